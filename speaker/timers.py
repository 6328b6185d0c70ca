"""Timers by key, such as the session timers of RFC 4271 section 8: a heap of deadlines.

The heap is corrected lazily: moving a deadline later, as every message does with the hold timer, is
one dictionary write; the heap entry moves when the old deadline is due. Never reads a clock: ``now``
is an argument.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Timers(Generic[K]):
    """One deadline per key, in seconds of the caller's clock."""

    __slots__ = ("_deadlines", "_heap", "_queued", "_serial")

    def __init__(self) -> None:
        self._deadlines: dict[K, float] = {}
        self._queued: dict[K, float] = {}
        """The earliest heap entry of each key that has one."""
        self._heap: list[tuple[float, int, K]] = []
        self._serial = 0

    def start(self, key: K, deadline: float) -> None:
        """Start a timer, or move its deadline."""
        self._deadlines[key] = deadline
        queued = self._queued.get(key)
        if queued is None or deadline < queued:
            self._push(key, deadline)

    def stop(self, key: K) -> None:
        """Stop a timer; no effect if it does not run."""
        if self._deadlines.pop(key, None) is not None and len(self._heap) > self._rebuild_size:
            self._rebuild()

    @property
    def _rebuild_size(self) -> int:
        """The number of heap entries beyond which the heap is rebuilt."""
        return 64 + 4 * len(self._deadlines)

    def _rebuild(self) -> None:
        """Rebuild the heap without the entries of stopped timers."""
        # Such an entry keeps its key, a session, alive until its deadline: without this, a client
        # that connects and disconnects in a loop would determine their number.
        self._queued = dict(self._deadlines)
        self._heap = [
            (deadline, serial, key) for serial, (key, deadline) in enumerate(self._queued.items())
        ]
        self._serial = len(self._heap)
        heapq.heapify(self._heap)

    def deadline(self, key: K) -> float | None:
        """Return the deadline of a timer, or None if it does not run."""
        return self._deadlines.get(key)

    def __len__(self) -> int:
        return len(self._deadlines)

    def items(self) -> Iterator[tuple[K, float]]:
        """Iterate over keys and deadlines, in no particular order."""
        yield from self._deadlines.items()

    def next_deadline(self) -> float | None:
        """Return a lower bound of the earliest deadline, or None without timers."""
        heap = self._heap
        while heap:
            when, _, key = heap[0]
            if self._deadlines.get(key) is not None and self._queued.get(key) == when:
                return when
            heapq.heappop(heap)
            if self._queued.get(key) == when:
                del self._queued[key]
        return None

    def expire(self, now: float) -> list[tuple[K, float]]:
        """Stop the timers that are due; return them in order, each with its deadline."""
        due: list[tuple[K, float]] = []
        heap = self._heap
        while heap and heap[0][0] <= now:
            when, _, key = heapq.heappop(heap)
            if self._queued.get(key) != when:
                continue
            del self._queued[key]
            deadline = self._deadlines.get(key)
            if deadline is None:
                continue
            if deadline > now:
                self._push(key, deadline)
                continue
            del self._deadlines[key]
            due.append((key, deadline))
        return due

    def _push(self, key: K, deadline: float) -> None:
        self._queued[key] = deadline
        self._serial += 1
        heapq.heappush(self._heap, (deadline, self._serial, key))
