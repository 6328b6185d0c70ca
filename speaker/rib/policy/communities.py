"""Communities as text with wildcards, matched against attributes and applied to them.

The number of parts selects the kind; the notation is documented in `speaker.api.policy`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from speaker.attribute import PathAttributes
from speaker.iana import WELL_KNOWN_COMMUNITIES

Standard = int
Large = tuple[int, int, int]
Extended = bytes
_EXTENDED: Final = re.compile(r"0x([0-9a-fA-F]{16})")
_ANY: Final = "*"


class Pattern(NamedTuple):
    """A community pattern; a part of None is a wildcard."""

    parts: tuple[int | None, ...]
    """Two numbers (standard), three (large), or none for an extended community."""
    extended: bytes = b""

    def found_in(self, attributes: PathAttributes) -> bool:
        """Return whether a route has a matching community."""
        if self.extended:
            return self.extended in attributes.extended_communities
        if len(self.parts) == 3:
            return any(map(self.is_large, attributes.large_communities))
        return any(map(self.is_standard, attributes.communities))

    def is_standard(self, value: Standard) -> bool:
        """Return whether a standard community matches."""
        if len(self.parts) != 2:
            return False
        high, low = self.parts
        return high in (None, value >> 16) and low in (None, value & 0xFFFF)

    def is_large(self, value: Large) -> bool:
        """Return whether a large community matches."""
        return len(self.parts) == 3 and all(
            part in (None, number) for part, number in zip(self.parts, value, strict=True)
        )


def pattern(text: str) -> Pattern:
    """Parse a community with wildcards. Raises ValueError."""
    well_known = WELL_KNOWN_COMMUNITIES.get(text)
    if well_known is not None:
        return Pattern((well_known >> 16, well_known & 0xFFFF))
    extended = _EXTENDED.fullmatch(text)
    if extended:
        return Pattern((), bytes.fromhex(extended[1]))
    fields = text.split(":")
    limit = {2: 0xFFFF, 3: 0xFFFFFFFF}.get(len(fields))
    if limit is None:
        raise ValueError(f"{text!r} is not a community such as 65001:80, 65001:1:2 or no-export")
    return Pattern(
        tuple(None if field == _ANY else _number(text, field, limit) for field in fields)
    )


def _number(text: str, field: str, limit: int) -> int:
    if not field.isascii() or not field.isdigit() or int(field) > limit:
        raise ValueError(f"community {text!r}: {field!r} is not a number up to {limit}")
    return int(field)


class Communities(NamedTuple):
    """Communities without wildcards, by kind."""

    standard: tuple[Standard, ...] = ()
    large: tuple[Large, ...] = ()
    extended: tuple[Extended, ...] = ()


def exact(texts: Iterable[str]) -> Communities:
    """Parse communities. Raises ValueError, also for wildcards."""
    standard: list[Standard] = []
    large: list[Large] = []
    extended: list[Extended] = []
    for text in texts:
        parts, octets = pattern(text)
        if octets:
            extended.append(octets)
            continue
        numbers = [part for part in parts if part is not None]
        if len(numbers) != len(parts):
            raise ValueError(f"community {text!r}: no wildcard is set or removed")
        if len(numbers) == 3:
            large.append((numbers[0], numbers[1], numbers[2]))
        else:
            standard.append(numbers[0] << 16 | numbers[1])
    return Communities(tuple(standard), tuple(large), tuple(extended))


def communities_of(attributes: PathAttributes) -> Communities:
    """Return a route's communities."""
    return Communities(
        attributes.communities, attributes.large_communities, attributes.extended_communities
    )


def without(communities: Communities, patterns: Sequence[Pattern]) -> Communities:
    """Return the communities that match none of the patterns."""
    return Communities(
        tuple(c for c in communities.standard if not any(p.is_standard(c) for p in patterns)),
        tuple(c for c in communities.large if not any(p.is_large(c) for p in patterns)),
        tuple(c for c in communities.extended if not any(p.extended == c for p in patterns)),
    )


def joined(one: Communities, other: Communities) -> Communities:
    """Return the communities of both, in order, without duplicates."""
    return Communities(
        tuple(dict.fromkeys(one.standard + other.standard)),
        tuple(dict.fromkeys(one.large + other.large)),
        tuple(dict.fromkeys(one.extended + other.extended)),
    )
