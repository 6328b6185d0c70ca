"""Community: names of BGP communities, for BGPAdvertisements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from resources.crds.schema_markers import doc
from resources.errors import FieldError, shortened
from resources.meta import Struct
from resources.metallb.objects import MetalLBObject
from resources.metallb.rules import twice_errors


class CommunityAlias(Struct, frozen=True):
    """One name."""

    name: Annotated[str, doc("The name; unique among all Communities.")] = ""
    value: Annotated[str, doc("The community: 65000:1, or large:65000:1:2.")] = ""


class CommunitySpec(Struct, frozen=True):
    """The specification."""

    communities: Annotated[tuple[CommunityAlias, ...], doc("The names.")] = ()


class Community(MetalLBObject, frozen=True, kw_only=True):
    """One set of names."""

    spec: CommunitySpec = msgspec.field(default_factory=CommunitySpec)


class UnknownNotationError(ValueError):
    """A text that is in neither notation of communities: it may be a name."""


def parse_community(text: str) -> int | tuple[int, int, int]:
    """Return a standard community as a number, a large one as three (RFC 1997, RFC 8092).

    Raises `UnknownNotationError` for another number of parts, `ValueError` for parts that are no
    numbers or too large. Source: MetalLB internal/bgp/community.
    """
    parts = text.split(":")
    if len(parts) == 2:
        high, low = (_number(text, part, 16) for part in parts)
        return high << 16 | low
    if len(parts) == 4 and parts[0] == "large":
        first, second, third = (_number(text, part, 32) for part in parts[1:])
        return (first, second, third)
    raise UnknownNotationError(f"{shortened(text)} is neither A:B nor large:A:B:C")


def _number(text: str, part: str, bits: int) -> int:
    if not (part.isascii() and part.isdigit()) or len(part) > 20 or int(part) >= 1 << bits:
        limit = (1 << bits) - 1
        raise ValueError(f"{shortened(text)}: {shortened(part)} is no number from 0 to {limit}")
    return int(part)


def community_errors(row: Community) -> Iterator[FieldError]:
    """Yield the rules that the names break, each on its own."""
    for i, alias in enumerate(row.spec.communities):
        try:
            parse_community(alias.value)
        except ValueError as error:
            yield FieldError(f"spec.communities[{i}].value", str(error))
    yield from twice_errors((alias.name for alias in row.spec.communities), "spec.communities")
