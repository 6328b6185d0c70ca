"""Named deadlines on a clock that others read: what every timer of RFC 4271 section 8 becomes.

A heap with lazy correction. Moving a deadline later (a hold timer, at every message) costs one
dictionary write; the heap learns of it when the old deadline comes. It must never read a clock:
`now` is always given.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Timers(Generic[K]):
    """At most one deadline per key."""

    __slots__ = ("_deadlines", "_heap", "_queued", "_serial")

    def __init__(self) -> None:
        self._deadlines: dict[K, float] = {}
        self._queued: dict[K, float] = {}
        """The earliest entry of the heap that stands for a key, for keys that have one."""
        self._heap: list[tuple[float, int, K]] = []
        self._serial = 0

    def start(self, key: K, deadline: float) -> None:
        """Set or move a deadline."""
        self._deadlines[key] = deadline
        queued = self._queued.get(key)
        if queued is None or deadline < queued:
            self._push(key, deadline)

    def stop(self, key: K) -> None:
        """Forget a deadline, also one that was never set."""
        if self._deadlines.pop(key, None) is not None and len(self._heap) > self._worth_tidying:
            self._tidy()

    @property
    def _worth_tidying(self) -> int:
        return 64 + 4 * len(self._deadlines)

    def _tidy(self) -> None:
        # Timers that were stopped keep their keys, sessions among them, until their time has come:
        # without this, whoever connects and goes away decides how many those are.
        self._queued = dict(self._deadlines)
        self._heap = [
            (deadline, serial, key) for serial, (key, deadline) in enumerate(self._queued.items())
        ]
        self._serial = len(self._heap)
        heapq.heapify(self._heap)

    def deadline(self, key: K) -> float | None:
        """Return when a timer is due, or None where it does not run."""
        return self._deadlines.get(key)

    def __len__(self) -> int:
        return len(self._deadlines)

    def items(self) -> Iterator[tuple[K, float]]:
        """Iterate over all deadlines, in no order that means anything."""
        yield from self._deadlines.items()

    def next_deadline(self) -> float | None:
        """Return the earliest deadline of all; never later than the truth, perhaps earlier."""
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
        """Take out what is due, in order, each with the time at which it was due."""
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
