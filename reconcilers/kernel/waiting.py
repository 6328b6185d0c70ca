"""Prefixes that wait, by their source: which of them are taken next. Pure.

A source is a table of the kernel, or a peer: sources share the room, so that a single change does not
wait for the table of another peer. Of one source mostly the newest are taken, as a single change may
follow a whole table, and some of the oldest, so that each is taken in time.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from typing import Final, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

OLDEST: Final = 4
"""One of this many prefixes that are taken is one of the oldest."""


def take_some(waiting: dict[K, dict[bytes, V]], room: int) -> dict[K, dict[bytes, V]]:
    """Remove and return waiting prefixes: up to ``room``, and at least one per source.

    The sources with the fewest entries come first.
    """
    taken: dict[K, dict[bytes, V]] = {}
    sources = sorted(waiting, key=lambda source: len(waiting[source]))
    for number, source in enumerate(sources):
        entries = waiting[source]
        share = max(1, room // (len(sources) - number))
        if len(entries) <= share:
            taken[source] = dict(reversed(entries.items()))
            del waiting[source]
        else:
            oldest = list(islice(entries, share // OLDEST))
            newest = list(islice(reversed(entries), share - len(oldest)))
            oldest.reverse()
            taken[source] = {nlri: entries.pop(nlri) for nlri in (*newest, *oldest)}
        room -= len(taken[source])
    return {source: entries for source, entries in taken.items() if entries}
