"""Slices of keys: a long table is read in pieces of bounded work, between which it may change.

The keys are copied when a read begins; what a key has is looked up when its slice is read.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

STEP_KEYS: Final = 50_000
"""Keys that are copied at once: some milliseconds for a table that is not in the caches."""
ATTEMPTS: Final = 8
"""A table that changes during each of them is copied at once."""

CopySteps: TypeAlias = Generator[Sequence[bytes], None, Iterator[Sequence[bytes]]]
"""Yields nothing but turns for others; returns lists of keys."""


def copied_in_steps(table: Collection[bytes], revision: Callable[[], int]) -> CopySteps:
    """Copy the keys of a table; yields an empty sequence after each step, and returns lists of them.

    The steps begin again when ``revision`` returns another number, or the length differs: the
    keys of an ended session leave their table without a revision. The lists are released as they are
    read.
    """
    for _ in range(ATTEMPTS):
        before = revision(), len(table)
        keys = iter(table)
        copied: deque[Sequence[bytes]] = deque()
        while (revision(), len(table)) == before:
            some = _collected(tuple(islice(keys, STEP_KEYS)))
            copied.append(some)
            if len(some) < STEP_KEYS:
                return _released(copied)
            yield ()
    # Two steps: the collection takes as long as the copy.
    copy = tuple(table)
    yield ()
    return _released(deque((_collected(copy),)))


def in_turns(steps: CopySteps) -> Iterator[Sequence[bytes]]:
    """Iterate over copied keys: an empty list for each step of the copy, then their lists."""
    yield from (yield from steps)


def _collected(keys: tuple[bytes, ...]) -> tuple[bytes, ...]:
    # The cyclic collector looks at each key of a new container in its next run, and of a list in two;
    # a tuple of octets is nothing that it has to look at again. Its run for the keys of several
    # readers together would be noticed by a session: so it is made for each step. A start of an agent
    # collects nothing, and has all of its rows among the young objects.
    if len(keys) >= STEP_KEYS and gc.isenabled():
        gc.collect(0)
    return keys


def _released(lists: deque[Sequence[bytes]]) -> Iterator[Sequence[bytes]]:
    while lists:
        yield lists.popleft()


def key_slices(lists: Iterable[Sequence[bytes]], size: int) -> Iterator[Sequence[bytes]]:
    """Split long lists, and join short ones: slices of at least ``size`` keys, of less than twice it.

    The last one may be shorter. An empty list is an empty slice.
    """
    slice_: list[bytes] = []
    for keys in lists:
        if not keys:
            yield []
        for start in range(0, len(keys), size):
            slice_ += keys[start : start + size]
            if len(slice_) >= size:
                yield slice_
                slice_ = []
    if slice_:
        yield slice_
