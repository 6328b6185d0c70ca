"""The routes of an answer that flags select by their prefix, communities, AS path and origin.

The program that answers has selected them by peer and table already; these are read as they arrive.
"""

from __future__ import annotations

import argparse
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias

from cells.api.streamed_list import StreamedList
from cells.nearest_prefixes import Network, network_of
from waggle import output

Item: TypeAlias = Mapping[str, Any]
ORIGINS: Final = ("igp", "egp", "incomplete")
"""The values of the path attribute ORIGIN (RFC 4271 section 5.1.1)."""
BOUNDARY: Final = r"(?:^|[ ,{}()]|$)"
"""The meaning of ``_`` in a pattern of an AS path, as in other routers' command lines."""


def add_filter_flags(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "--within", type=_network, metavar="PREFIX", help="only routes within this prefix"
    )
    parser.add_argument(
        "--community",
        action="append",
        type=_community,
        default=[],
        metavar="C",
        help="only routes with this community, 65000:1, 65000:1:1 or a name such as no-export; may be "
        "repeated: with all of them",
    )
    parser.add_argument(
        "--as-path",
        type=_pattern,
        metavar="REGEX",
        help="only routes whose AS path matches; _ matches a boundary: _64512_, ^64512_",
    )
    parser.add_argument(
        "--origin",
        metavar="ORIGIN",
        help="only routes of this object, [KIND/][NAMESPACE/]NAME, or igp, egp or incomplete",
    )
    parser.add_argument("--count", action="store_true", help="print the number of routes only")


def _community(text: str) -> str:
    """Return a community as answers have it. Its names: loaded only for one."""
    if text[:1].isalpha():
        from speaker.attribute.path_attributes import community_text
        from speaker.iana import WELL_KNOWN_COMMUNITIES

        if text in WELL_KNOWN_COMMUNITIES:
            return community_text(WELL_KNOWN_COMMUNITIES[text])
    parts = text.split(":")
    limit = {2: 0xFFFF, 3: 0xFFFFFFFF}.get(len(parts), -1)
    if all(part.isdecimal() and part.isascii() and int(part) <= limit for part in parts):
        return ":".join(str(int(part)) for part in parts)
    text = f"not a community: {text!r} (65000:1, 65000:1:1, or a name such as no-export)"
    raise argparse.ArgumentTypeError(text)


def _network(text: str) -> Network:
    network = network_of(text)
    if network is None:
        raise argparse.ArgumentTypeError(f"not a prefix: {text!r} (10.0.0.0/8, 2001:db8::/32)")
    return network


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text.replace("_", BOUNDARY))
    except re.error as error:
        raise argparse.ArgumentTypeError(f"not a regular expression: {text!r}: {error}") from None


def given_filters(args: argparse.Namespace) -> list[str]:
    """Return the flags that are given."""
    given = {
        "--within": args.within,
        "--community": args.community,
        "--as-path": args.as_path,
        "--origin": args.origin,
    }
    return [flag for flag, value in given.items() if value]


def filters(args: argparse.Namespace) -> list[Callable[[Item], bool]]:
    """Return the conditions of the flags that are given."""
    conditions: list[Callable[[Item], bool]] = []
    if args.within is not None:
        conditions.append(lambda item: _is_within(item["prefix"], args.within))
    if args.community:
        conditions.append(lambda item: {*args.community}.issubset(_communities(item)))
    if args.as_path is not None:
        conditions.append(lambda item: args.as_path.search(item.get("asPath", "")) is not None)
    if args.origin in ORIGINS:
        conditions.append(lambda item: item.get("origin") == args.origin)
    elif args.origin is not None:
        conditions.append(lambda item: _is_of_object(item, args.origin))
    return conditions


def _is_within(prefix: str, network: Network) -> bool:
    own: Any = ipaddress.ip_network(prefix)
    return own.version == network.version and bool(own.subnet_of(network))


def _communities(item: Item) -> list[str]:
    return [*item.get("communities", ()), *item.get("largeCommunities", ())]


def _is_of_object(item: Item, name: str) -> bool:
    """Return whether one of the objects of a route is ``web``, ``shop/web`` or ``Service/shop/web``."""
    return any(
        output.object_name(origin) == name or output.object_name(origin).endswith(f"/{name}")
        for origin in item.get("origins", ())
    )


class FilteredList:
    """An answer without the routes that conditions reject, cut after ``limit`` others."""

    def __init__(
        self,
        answer: StreamedList,
        conditions: list[Callable[[Item], bool]],
        limit: int | None,
    ) -> None:
        self._answer = answer
        self._conditions = conditions
        self._limit = limit
        self._truncated = False
        self.rejected = 0
        """The number of routes so far that a condition rejects."""
        self.head = answer.head

    @property
    def rest(self) -> Mapping[str, Any]:
        """The members behind the list, once all items are read."""
        return {"truncated": True} if self._truncated else self._answer.rest

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the routes that all conditions select, once they are complete."""
        selected = (item for item in self._answer if self._selects(item))
        yield from islice(selected, self._limit)
        if self._limit is not None:
            self._truncated = next(selected, None) is not None

    def _selects(self, item: Item) -> bool:
        if all(select(item) for select in self._conditions):
            return True
        self.rejected += 1
        return False
