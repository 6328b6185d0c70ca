"""A set of prefixes that can only be counted: received routes that are not kept.

Where prefix tables are in C, such a table; each key has the same value. In Python a fingerprint
of eight octets for each prefix, in hash tables with open addressing: 12 to 32 octets for
a prefix, where a route takes a hundred and its attributes a thousand. Two prefixes of one fingerprint
are one, which happens once in 10^19 pairs. The tables are many and small, so that none of them
grows for longer than a millisecond.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Final, final

from speaker.rib.prefix_table import FORM, PrefixTable

_SHARDS: Final = 256
_FIRST_SLOTS: Final = 8
_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
_FREE: Final = 0
_REMOVED: Final = 1


@final
class Exact:
    """The keys that are counted: prefixes in wire form, behind their path identifiers with ADD-PATH."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: PrefixTable[bool] = PrefixTable()

    def __len__(self) -> int:
        """Return the number of different prefixes."""
        return len(self._keys)

    def add(self, keys: Sequence[bytes]) -> None:
        """Add prefixes; known prefixes are counted once."""
        self._keys.insert(keys, True)

    def remove(self, keys: Iterable[bytes]) -> None:
        """Remove prefixes; unknown prefixes are ignored."""
        self._keys.discard(list(keys))


@final
class Fingerprints:
    """The same as fingerprints."""

    __slots__ = ("_count", "_shards", "_used")

    def __init__(self) -> None:
        self._count = 0
        self._shards: list[array[int] | None] = [None] * _SHARDS
        self._used = [0] * _SHARDS
        """Slots of each shard that are not free: fingerprints, and marks of removed ones."""

    def __len__(self) -> int:
        """Return the number of different prefixes."""
        return self._count

    def add(self, keys: Iterable[bytes]) -> None:
        """Add prefixes; known prefixes are counted once."""
        shards, used = self._shards, self._used
        for key in keys:
            fingerprint = hash(key) & _MASK
            if fingerprint <= _REMOVED:
                fingerprint += 2
            number = fingerprint % _SHARDS
            slots = shards[number]
            if slots is None or 3 * used[number] >= 2 * len(slots):
                slots = self._grow(number)
            place = _find(slots, fingerprint)
            if slots[place] != fingerprint:
                slots[place] = fingerprint
                used[number] += 1
                self._count += 1

    def remove(self, keys: Iterable[bytes]) -> None:
        """Remove prefixes; unknown prefixes are ignored."""
        for key in keys:
            fingerprint = hash(key) & _MASK
            if fingerprint <= _REMOVED:
                fingerprint += 2
            slots = self._shards[fingerprint % _SHARDS]
            if slots is not None:
                place = _find(slots, fingerprint)
                if slots[place] == fingerprint:
                    slots[place] = _REMOVED
                    self._count -= 1
        if not self._count:
            self.clear()

    def clear(self) -> None:
        """Remove all prefixes."""
        self._count = 0
        self._shards = [None] * _SHARDS
        self._used = [0] * _SHARDS

    def _grow(self, number: int) -> array[int]:
        """Return the table of a shard with room for more, without marks of removed prefixes."""
        before = self._shards[number] or ()
        present = [fingerprint for fingerprint in before if fingerprint > _REMOVED]
        size = _FIRST_SLOTS
        while size <= 2 * len(present):
            size *= 2
        slots = self._shards[number] = array("Q", bytes(8 * size))
        for fingerprint in present:
            slots[_find(slots, fingerprint)] = fingerprint
        self._used[number] = len(present)
        return slots


CountedPrefixes = Exact | Fingerprints


def counted_prefixes() -> CountedPrefixes:
    """Return an empty set, of the form that takes less memory here."""
    return Exact() if FORM == "C" else Fingerprints()


def _find(slots: array[int], fingerprint: int) -> int:
    """Return the slot of a fingerprint, or the free one where it belongs."""
    last = len(slots) - 1
    place = fingerprint >> 8 & last
    while slots[place] not in (fingerprint, _FREE):
        place = place + 1 & last
    return place
