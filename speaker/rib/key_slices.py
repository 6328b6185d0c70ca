"""Slices of keys: a long table is read in pieces of bounded work, between which it may change.

The keys are copied when a read begins; what a key has is looked up when its slice is read.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

MANY: Final = 50_000
"""Copied keys from which the collector is to look at them at once."""


def copied(keys: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return a copy of keys that may take a while to be read.

    The cyclic collector looks at each key of a new container in its next run, and of a list in two;
    a tuple of octets is nothing that it has to look at again. Its run for many keys takes milliseconds,
    and with those of several readers together a session would notice: so it is made for each.
    """
    found = tuple(keys)
    if len(found) >= MANY:
        gc.collect(0)
    return found


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
