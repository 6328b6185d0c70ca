"""Slices of keys: a long table is read in pieces of bounded work, between which it may change.

The keys are copied when a read begins; what a key has is looked up when its slice is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def key_slices(lists: Iterable[Sequence[bytes]], size: int) -> Iterator[Sequence[bytes]]:
    """Split long lists, and join short ones: slices of at least ``size`` keys, of less than twice it.

    The last one may be shorter.
    """
    found: list[bytes] = []
    for keys in lists:
        for start in range(0, len(keys), size):
            found += keys[start : start + size]
            if len(found) >= size:
                yield found
                found = []
    if found:
        yield found
