"""The prefix table as a dictionary, and the interface of both forms.

A table maps keys (prefixes in wire form, behind their path identifiers with ADD-PATH) to values that
are compared by identity, in the order in which the keys were inserted. What `dict` has is as there; the
methods below are for runs of keys: most messages announce, replace or withdraw all of their prefixes
with one attribute set.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import repeat
from typing import TypeVar

from speaker.errors import Truncated
from speaker.nlri import decode_prefixes

V = TypeVar("V")
"""The values: anything but None."""


class PrefixTable(dict[bytes, V]):
    """Keys to values, in the order of insertion."""

    __slots__ = ()

    def isdisjoint(self, keys: Sequence[bytes]) -> bool:
        """Return whether none of some keys is in the table."""
        return self.keys().isdisjoint(keys)

    def insert(self, keys: Sequence[bytes], value: V) -> int:
        """Set the value of all of some keys; return how many of them are new."""
        before = len(self)
        self.update(dict.fromkeys(keys, value))
        return len(self) - before

    def insert_fields(
        self, fields: Sequence[bytes], values: Sequence[V], afi: int
    ) -> tuple[int, Sequence[Sequence[bytes]]]:
        """Set the value of each NLRI field's prefixes if all prefixes of all fields are new.

        Returns the number of prefixes, and each field's prefixes, trailing bits cleared; 0 if a field
        is malformed, or a prefix is known or duplicated: then nothing has changed.
        """
        try:
            parts = [decode_prefixes(field, afi) for field in fields]
        except Truncated:
            return 0, ()
        # One lookup for each prefix, not two: most of the time of a full table is spent here.
        put = self.setdefault
        size = len(self)
        for value, prefixes in zip(values, parts, strict=True):
            for prefix in prefixes:
                put(prefix, value)
        count = sum(map(len, parts))
        if len(self) - size != count:
            # A dictionary keeps the order of insertion: the new prefixes are its last ones.
            while len(self) > size:
                self.popitem()
            return 0, ()
        return count, parts

    def replace(self, keys: Sequence[bytes], old: V, new: V | None) -> int:
        """Replace the value that all of some keys have; with None remove the keys.

        Returns the number of different keys; 0 if a key is unknown or has another value: then
        nothing has changed.
        """
        held = list(map(self.get, keys))
        if held.count(old) != len(held):
            return 0
        if new is None:
            before = len(self)
            deque(map(self.pop, keys, repeat(None)), maxlen=0)
            return before - len(self)
        installed = dict.fromkeys(keys, new)
        self.update(installed)
        return len(installed)

    def discard(self, keys: Sequence[bytes]) -> int:
        """Remove keys; unknown ones are ignored. Returns how many were there."""
        if self.keys().isdisjoint(keys):
            return 0
        before = len(self)
        deque(map(self.pop, keys, repeat(None)), maxlen=0)
        return before - len(self)

    def discard_fields(self, fields: Sequence[bytes], afi: int) -> int:
        """Remove the prefixes of NLRI fields that are well-formed, as `discard` does."""
        return sum(self.discard(decode_prefixes(field, afi)) for field in fields)

    def memory(self) -> int:
        """Return the octets that the table takes, its keys included and its values not."""
        return self.__sizeof__() + sum(map(bytes.__sizeof__, self))
