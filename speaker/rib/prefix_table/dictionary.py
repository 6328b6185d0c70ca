"""The prefix table as a dictionary, and the interface of both forms.

A table maps keys (prefixes in wire form, behind their path identifiers with ADD-PATH; at most 255
octets) to values that are compared by identity, in the order in which the keys were inserted. What
`native.pyi` names is as in `dict`; its other methods, and ``==``, are not used. The methods below are
for runs of keys: most messages announce, replace or withdraw all of their prefixes with one attribute
set.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, repeat
from typing import Final, TypeVar

from speaker.errors import Truncated
from speaker.nlri import NlriFields

STEP_KEYS: Final = 50_000
"""Keys that a walk copies at once: some milliseconds for a table that is not in the caches."""
ATTEMPTS: Final = 8
"""A table that changes during each of them is copied at once."""

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

    def insert_fields(self, fields: NlriFields, values: Sequence[V]) -> int:
        """Set the value of each NLRI field's prefixes if all prefixes of all fields are new.

        Returns the number of prefixes; 0 if a field is malformed, or a prefix is known or duplicated:
        then nothing has changed.
        """
        try:
            parts = fields.decoded()
        except Truncated:
            return 0
        # One lookup for each prefix, not two: most of the time of a full table is spent here.
        put, size, count = self.setdefault, len(self), 0
        for keys, value in zip(parts, values, strict=True):
            count += len(keys)
            for key in keys:
                put(key, value)
        if len(self) - size != count:
            # A dictionary keeps the order of insertion: the new prefixes are its last ones.
            while len(self) > size:
                self.popitem()
            return 0
        return count

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

    def discard_fields(self, fields: NlriFields) -> int:
        """Remove the prefixes of NLRI fields that are well-formed, as `discard` does."""
        return sum(map(self.discard, fields.decoded()))

    def walk(self, size: int, revision: Callable[[], int]) -> Iterator[Sequence[bytes]]:
        """Iterate over lists of at most ``size`` keys; the table may change between two of them.

        A key that is there all the time is in one list; so may be a key that was removed meanwhile, or
        inserted before the first list was read. An empty list is a turn for others.
        ``revision`` returns another number after each change of the keys, but for the removal of
        some: this form copies the keys in steps, which begin again when they have changed.
        """
        for keys in _copied(self, revision):
            if not keys:
                yield keys
            for start in range(0, len(keys), size):
                yield keys[start : start + size]


def _copied(table: PrefixTable[V], revision: Callable[[], int]) -> Iterator[Sequence[bytes]]:
    """Yield an empty sequence after each step of a copy, then the keys in long lists.

    The lists are released as they are read.
    """
    for _ in range(ATTEMPTS):
        before = revision(), len(table)
        keys = iter(table)
        copied: deque[Sequence[bytes]] = deque()
        while (revision(), len(table)) == before:
            some = _collected(tuple(islice(keys, STEP_KEYS)))
            if some:
                copied.append(some)
            if len(some) < STEP_KEYS:
                while copied:
                    yield copied.popleft()
                return
            yield ()
    # Two steps: the collection takes as long as the copy.
    copy = tuple(table)
    yield ()
    yield _collected(copy)


def _collected(keys: tuple[bytes, ...]) -> tuple[bytes, ...]:
    # The cyclic collector looks at each key of a new container in its next run, and of a list in two;
    # a tuple of octets is nothing that it has to look at again. Its run for the keys of several
    # readers together would be noticed by a session: so it is made for each step. A start of an agent
    # collects nothing, and has all of its rows among the young objects.
    if len(keys) >= STEP_KEYS and gc.isenabled():
        gc.collect(0)
    return keys
