"""Slices of keys: lists of any length are read in pieces of bounded work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


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
