"""The first N of many keys by rank, kept as keys come, go and change. Pure.

A change costs the logarithm of the number of keys, whatever N is.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any, Final, Generic, TypeVar

K = TypeVar("K")
Rank = tuple[Any, ...]
"""Compared with other ranks; no two keys have the same one."""

_SLACK: Final = 64
"""Outdated entries above which a heap is built again, beside as many as it has valid ones."""


class _Last(Generic[K]):
    """An entry of the heap of the first keys: the one with the highest rank comes first."""

    __slots__ = ("key", "rank")

    def __init__(self, rank: Rank, key: K) -> None:
        self.rank = rank
        self.key = key

    def __lt__(self, other: _Last[K]) -> bool:
        return other.rank < self.rank


class FirstByRank(Generic[K]):
    """Keys with their ranks, and which of them are the first ``size``."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._ranks: dict[K, Rank] = {}
        self._inside: set[K] = set()
        self._last: list[_Last[K]] = []
        """The first keys, the last one of them on top; entries may be outdated."""
        self._next: list[tuple[Rank, K]] = []
        """The others, the first one of them on top; entries may be outdated."""
        self._moved: set[K] = set()
        """Keys whose place has changed since the last call of `settle`."""

    def __len__(self) -> int:
        """Return the number of all keys."""
        return len(self._ranks)

    def __contains__(self, key: K) -> bool:
        """True if a key is one of the first ones, as of the last call of `settle`."""
        return key in self._inside

    @property
    def waiting(self) -> int:
        """The number of keys that are not among the first ones by rank."""
        return len(self._ranks) - len(self._inside)

    def put(self, key: K, rank: Rank) -> None:
        """Add a key with its rank, or change its rank."""
        if self._ranks.get(key) == rank:
            return
        self._ranks[key] = rank
        self._push(key, rank)

    def discard(self, key: K) -> None:
        """Remove a key from the ranks, if it is there."""
        if self._ranks.pop(key, None) is not None and key in self._inside:
            self._inside.discard(key)
            self._moved.symmetric_difference_update((key,))

    def settle(self) -> set[K]:
        """Find the first keys by rank; return the keys that joined them, and the keys that left."""
        while (first := self._first_outside()) is not None:
            if len(self._inside) < self.size:
                self._move(heapq.heappop(self._next)[1])
                continue
            last = self._last_inside()
            if last is None or self._ranks[last] < self._ranks[first]:
                break
            self._move(last)
        while len(self._inside) > self.size and (last := self._last_inside()) is not None:
            self._move(last)
        moved, self._moved = self._moved, set()
        return moved

    def waiting_keys(self) -> Iterator[K]:
        """Yield the keys that are not among the first ones, in order of rank, each once.

        The first ones of many cost little; nothing may change meanwhile.
        """
        heap, seen = self._next, set[K]()
        ahead = [(heap[0], 0)] if heap else []
        while ahead:
            (rank, key), place = heapq.heappop(ahead)
            for child in (2 * place + 1, 2 * place + 2):
                if child < len(heap):
                    heapq.heappush(ahead, (heap[child], child))
            if key not in self._inside and key not in seen and self._ranks.get(key) == rank:
                seen.add(key)
                yield key

    def _move(self, key: K) -> None:
        """Move a key to the other side."""
        if key in self._inside:
            self._inside.discard(key)
        else:
            self._inside.add(key)
        self._moved.symmetric_difference_update((key,))
        self._push(key, self._ranks[key])

    def _push(self, key: K, rank: Rank) -> None:
        if key in self._inside:
            heapq.heappush(self._last, _Last(rank, key))
            if len(self._last) > 2 * len(self._inside) + _SLACK:
                self._last = [_Last(self._ranks[key], key) for key in self._inside]
                heapq.heapify(self._last)
        else:
            heapq.heappush(self._next, (rank, key))
            if len(self._next) > 2 * self.waiting + _SLACK:
                self._next = [
                    (rank_of_key, waiting_key)
                    for waiting_key, rank_of_key in self._ranks.items()
                    if waiting_key not in self._inside
                ]
                heapq.heapify(self._next)

    def _first_outside(self) -> K | None:
        while self._next:
            rank, key = self._next[0]
            if key not in self._inside and self._ranks.get(key) == rank:
                return key
            heapq.heappop(self._next)
        return None

    def _last_inside(self) -> K | None:
        while self._last:
            top = self._last[0]
            if top.key in self._inside and self._ranks.get(top.key) == top.rank:
                return top.key
            heapq.heappop(self._last)
        return None
