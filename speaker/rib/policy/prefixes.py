"""Prefix lists with length ranges, matched on wire octets.

A list is indexed by the lengths of its prefixes: a match costs one dictionary lookup per distinct
length, whatever the size of the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import final

from speaker.api import PrefixRule
from speaker.nlri import ADDRESS_BITS, Family, prefix_to_wire


def _bits(wire: bytes, length: int) -> int:
    """Return the first ``length`` bits of a prefix in wire form as a number."""
    octets = wire[1 : 1 + ((length + 7) >> 3)]
    return int.from_bytes(octets, "big") >> (len(octets) * 8 - length)


@final
class PrefixList:
    """A compiled prefix list. Raises ValueError for an invalid prefix or length range."""

    __slots__ = ("_by_afi",)

    def __init__(self, rules: Sequence[PrefixRule]) -> None:
        by_afi: dict[int, dict[int, dict[int, list[tuple[int, int]]]]] = {}
        for rule in rules:
            family, wire = prefix_to_wire(rule.prefix)
            length = wire[0]
            size = ADDRESS_BITS[family.afi]  # type: ignore[index]  # an Afi is its number
            low = length if rule.ge is None else rule.ge
            longest = length if rule.ge is None else size
            high = longest if rule.le is None else rule.le
            if not length <= low <= high <= size:
                raise ValueError(f"{rule.prefix}: lengths {low} to {high} are not within it")
            ranges = by_afi.setdefault(family.afi, {}).setdefault(length, {})
            ranges.setdefault(_bits(wire, length), []).append((low, high))
        self._by_afi = {
            afi: [
                (length, {bits: tuple(ranges) for bits, ranges in table.items()})
                for length, table in sorted(by_length.items())
            ]
            for afi, by_length in by_afi.items()
        }

    def covers(self, family: Family, nlri: bytes) -> bool:
        """Return whether an entry contains a prefix in wire form and permits its length."""
        actual = nlri[0]
        for length, table in self._by_afi.get(family.afi, ()):
            if length > actual:
                return False
            for low, high in table.get(_bits(nlri, length), ()):
                if low <= actual <= high:
                    return True
        return False


@lru_cache(maxsize=256)
def prefix_list(rules: tuple[PrefixRule, ...]) -> PrefixList:
    """Compile a prefix list; equal lists of several peers are compiled once."""
    return PrefixList(rules)
