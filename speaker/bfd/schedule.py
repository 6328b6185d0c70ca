"""The sessions by their deadlines, in a heap.

A session has one deadline, which it keeps itself, beside the time of its entry in the heap. The heap
is corrected lazily: to move a deadline later is one write, and the entry moves when its time has come.
Never reads a clock: ``now`` is an argument.
"""

from __future__ import annotations

import heapq
import itertools
from typing import Final, Generic, TypeVar

NEVER: Final = 1 << 62
"""A time that does not come, in microseconds."""
_FEW: Final = 64
"""Outdated entries that are always tolerated."""


class Scheduled:
    """The schedule's part of a session."""

    deadline = NEVER
    """When something is to be done for it."""
    queued = NEVER
    """The time of its entry in the heap; entries of other times are outdated."""


S = TypeVar("S", bound=Scheduled)


class Schedule(Generic[S]):
    """Sessions, each with one deadline or none, in microseconds. A session is in one schedule."""

    __slots__ = ("_heap", "_outdated", "_serial")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, S]] = []
        self._outdated = 0
        """The number of entries that are outdated."""
        self._serial = itertools.count()
        """Numbers of entries, as sessions have no order."""

    def start(self, session: S, deadline: int) -> None:
        """Set the deadline of a session, before `NEVER`."""
        session.deadline = deadline
        queued = session.queued
        if deadline < queued:
            session.queued = deadline
            heapq.heappush(self._heap, (deadline, next(self._serial), session))
            if queued < NEVER:
                self._outdate()

    def stop(self, session: S) -> None:
        """Leave a session without a deadline; no effect if it has none."""
        session.deadline = NEVER
        if session.queued < NEVER:
            session.queued = NEVER
            self._outdate()

    def _outdate(self) -> None:
        """Take that an entry is outdated; make the heap anew if they are most of it.

        An entry keeps its session in memory until its time: without this, a neighbor that comes and
        goes in a loop would determine their number.
        """
        self._outdated += 1
        if self._outdated <= _FEW + len(self._heap) // 2:
            return
        sessions = dict.fromkeys(session for _, _, session in self._heap if session.queued < NEVER)
        for session in sessions:
            session.queued = session.deadline
        self._heap = [(session.deadline, next(self._serial), session) for session in sessions]
        heapq.heapify(self._heap)
        self._outdated = 0

    def next_deadline(self) -> int | None:
        """Return a time that is no later than any deadline; None without a deadline."""
        heap = self._heap
        while heap:
            time, _, session = heap[0]
            if session.queued == time:
                return time
            heapq.heappop(heap)
            self._outdated -= 1
        return None

    def expire(self, now: int) -> list[S]:
        """Return the sessions whose deadlines have come, in their order; they have none any more."""
        due: list[S] = []
        heap = self._heap
        while heap and heap[0][0] <= now:
            time, _, session = heapq.heappop(heap)
            if session.queued != time:
                self._outdated -= 1
                continue
            deadline = session.deadline
            if deadline > now:
                session.queued = deadline
                heapq.heappush(heap, (deadline, next(self._serial), session))
                continue
            session.deadline = session.queued = NEVER
            due.append(session)
        return due
