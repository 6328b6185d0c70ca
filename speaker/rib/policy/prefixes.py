"""Prefix lists with length ranges, matched on wire octets.

A list is indexed by the lengths of its prefixes: a match costs one dictionary lookup per distinct
length, whatever the size of the list. The prefixes that a short list covers can be counted and listed,
which is cheaper than to match a large table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, final

from speaker.api import PrefixRule
from speaker.nlri import ADDRESS_BITS, Family, prefix_to_wire


def _bits(wire: bytes, length: int) -> int:
    """Return the first ``length`` bits of a prefix in wire form as a number."""
    octets = wire[1 : 1 + ((length + 7) >> 3)]
    return int.from_bytes(octets, "big") >> (len(octets) * 8 - length)


@final
class PrefixList:
    """A compiled prefix list. Raises ValueError for an invalid prefix or length range."""

    __slots__ = ("_by_afi", "_first_octets", "_rules")

    def __init__(self, rules: Sequence[PrefixRule]) -> None:
        self._rules = rules
        by_afi: dict[int, dict[int, dict[int, list[tuple[int, int, int]]]]] = {}
        for number, rule in enumerate(rules):
            family, wire = prefix_to_wire(rule.prefix)
            length = wire[0]
            size = ADDRESS_BITS[family.afi]  # type: ignore[index]  # an Afi is its number
            low = length if rule.ge is None else rule.ge
            longest = length if rule.ge is None else size
            high = longest if rule.le is None else rule.le
            if not length <= low <= high <= size:
                raise ValueError(f"{rule.prefix}: lengths {low} to {high} are not within it")
            ranges = by_afi.setdefault(family.afi, {}).setdefault(length, {})
            ranges.setdefault(_bits(wire, length), []).append((low, high, number))
        self._by_afi = {
            afi: [
                (length, {bits: tuple(ranges) for bits, ranges in table.items()})
                for length, table in sorted(by_length.items())
            ]
            for afi, by_length in by_afi.items()
        }
        self._first_octets = {
            afi: frozenset(
                bytes((bits >> length - 8,)) for length, table in tables for bits in table
            )
            for afi, tables in self._by_afi.items()
            if tables[0][0] >= 8
        }
        """Of the prefixes that a list covers, by AFI, where no rule is shorter than an octet."""

    def covers(self, family: Family, nlri: bytes) -> bool:
        """Return whether an entry contains a prefix in wire form and permits its length."""
        actual = nlri[0]
        for length, table in self._by_afi.get(family.afi, ()):
            if length > actual:
                return False
            for low, high, _ in table.get(_bits(nlri, length), ()):
                if low <= actual <= high:
                    return True
        return False

    def split(
        self, family: Family, keys: Sequence[bytes], skip: int = 0
    ) -> tuple[list[bytes], Sequence[bytes]]:
        """Return the keys whose prefix the list `covers`, and the others, each in their order.

        ``skip`` octets (a path identifier) precede each prefix. The loop of a received message: it
        calls nothing that it can do itself.
        """
        tables = self._by_afi.get(family.afi)
        if not tables:
            return [], keys
        start = skip + 1
        first_octets = self._first_octets.get(family.afi)
        if first_octets is not None and first_octets.isdisjoint(
            [key[start : start + 1] for key in keys]
        ):
            return [], keys
        number_of = int.from_bytes
        matching: list[bytes] = []
        others: list[bytes] = []
        for key in keys:
            actual = key[skip]
            value = number_of(key[start:], "big")
            bits = (len(key) - start) * 8
            into = others
            for length, table in tables:
                if length > actual:
                    break
                for low, high, _ in table.get(value >> (bits - length), ()):
                    if low <= actual <= high:
                        into = matching
                        break
                if into is matching:
                    break
            into.append(key)
        return matching, others

    def first_match(self, family: Family, nlri: bytes) -> PrefixRule | None:
        """Return the first rule that covers a prefix in wire form, or None."""
        actual = nlri[0]
        numbers = [
            number
            for length, table in self._by_afi.get(family.afi, ())
            if length <= actual
            for low, high, number in table.get(_bits(nlri, length), ())
            if low <= actual <= high
        ]
        return self._rules[min(numbers)] if numbers else None

    def _ranges(self, family: Family) -> Iterator[tuple[int, int, int, int]]:
        """Yield the first bits of each rule, their number, and the range of lengths."""
        for length, table in self._by_afi.get(family.afi, ()):
            for bits, ranges in table.items():
                for low, high, _ in ranges:
                    yield bits, length, low, high

    def size(self, family: Family) -> int:
        """Return how many prefixes of a family the rules cover, each rule counted for itself."""
        return sum(
            (1 << (high - length + 1)) - (1 << (low - length))
            for _, length, low, high in self._ranges(family)
        )

    def members(self, family: Family) -> Iterator[bytes]:
        """Iterate over the covered prefixes of a family in wire form; `size` is their number."""
        for bits, length, low, high in self._ranges(family):
            for longer in range(low, high + 1):
                octets = (longer + 7) >> 3
                shift = octets * 8 - longer
                first = bits << (longer - length)
                for number in range(first, first + (1 << (longer - length))):
                    yield bytes((longer,)) + (number << shift).to_bytes(octets, "big")


def prefix_list(rules: tuple[PrefixRule, ...]) -> PrefixList:
    """Compile a prefix list; equal lists of several peers are compiled once."""
    known = _same.get(id(rules))
    if known is None:
        if len(_same) >= _MOST:
            _same.clear()
        # With the rules, so that no other list gets their identity.
        known = _same[id(rules)] = (rules, _compiled(rules))
    return known[1]


_MOST: Final = 256
"""Compiled lists that are kept."""
_same: Final[dict[int, tuple[tuple[PrefixRule, ...], PrefixList]]] = {}
"""Compiled lists by the identity of their rules: a hash is one of each rule."""


@lru_cache(maxsize=_MOST)
def _compiled(rules: tuple[PrefixRule, ...]) -> PrefixList:
    return PrefixList(rules)
