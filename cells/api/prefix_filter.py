"""The prefix of ``waggle routes``: an exact match, or the longest match of an address."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from reconcilers.prefixes import covering
from speaker.api import RouteView
from speaker.nlri import Family, prefix_to_wire


class PrefixFilter(NamedTuple):
    """The prefixes of one family to look up, in their order; the first with a route matches."""

    family: Family
    prefixes: Sequence[bytes]
    """In wire form."""

    def first_match(self, views: Iterable[RouteView]) -> Iterator[RouteView]:
        """Yield the routes of the first prefix among ``views``, which are ordered by prefix."""
        for _, routes in islice(groupby(views, key=lambda route: route.prefix), 1):
            yield from routes


def parse_prefix(text: str) -> PrefixFilter:
    """Parse a prefix (``10.0.0.0/24``, host bits are cleared) or an address (``10.0.0.1``).

    An address matches the longest prefix that contains it, as in forwarding (RFC 4632 section 5.1).
    Raises ValueError naming the text.
    """
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f"{text!r} is neither a prefix nor an address") from None
    family, nlri = prefix_to_wire(str(network))
    return PrefixFilter(family, [nlri] if "/" in text else covering(nlri))
