"""Changes of many routes in slices: one with each sending of UPDATEs, so that no session waits long.

The end of a session, or of the time of stale routes, concerns a whole table. What concerns it is a
sequence of steps, which the engine performs in turn with the other inputs. A slice is bounded by
numbers of routes and not by time: a recorded run replays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, final

SLICE_UNITS: Final = 2000
"""The work of a slice. A unit is a route that leaves a Loc-RIB, about two microseconds."""
STEP_ROUTES: Final = 250
"""The number of routes of one step."""
FAILOVER_UNITS: Final = 4
"""The work for a route that another path replaces: selection, and an UPDATE with its attributes."""
LOOKUPS_PER_UNIT: Final = 4
"""Routes that are looked up, or released, and remain as they are for the peers."""

Steps = Iterator[int]
"""Performs a step each time that it is advanced; yields the units of its work."""


def emptied(tables: Iterable[dict[Any, Any]]) -> Steps:
    """Empty tables in steps: to release a hundred thousand objects at once takes 100 ms."""
    for table in tables:
        while table:
            some = min(STEP_ROUTES, len(table))
            for _ in range(some):
                table.popitem()
            yield some


@final
class SlicedWork:
    """The steps that are still to be performed, of all instances of an engine."""

    __slots__ = ("_failover", "_left", "_report", "_rest", "_running", "_stopped", "pending")

    def __init__(self, report: Callable[[Exception], None]) -> None:
        """``report`` is called with an error in a step, whose sequence ends."""
        self._failover: deque[Steps] = deque()
        self._rest: deque[Steps] = deque()
        self._report = report
        self.pending = False
        """Whether steps are left. An attribute: it is read after each input."""
        self._left = SLICE_UNITS
        """The units that are left until `renew`."""
        self._running = False
        self._stopped = False

    def add(self, steps: Steps, *, failover: bool = False) -> None:
        """Perform steps, the first of them now if the present slice has room.

        Steps with ``failover`` precede all others: they replace paths, the others remove them.
        """
        if not self._stopped:
            (self._failover if failover else self._rest).append(steps)
            self.pending = True
            self._run()

    def renew(self) -> None:
        """Perform the next slice."""
        self._left = SLICE_UNITS
        if self.pending:
            self._run()

    def stop(self) -> None:
        """Perform no further steps: the program ends, and no peer is sent their changes."""
        self._stopped = True
        self._failover.clear()
        self._rest.clear()
        self.pending = False

    def _run(self) -> None:
        if self._running:
            return
        self._running = True
        try:
            while self._left > 0 and (queue := self._failover or self._rest):
                steps = queue[0]
                # Fence: an internal error in the routes of one session must not affect another.
                try:
                    units = next(steps, None)
                except Exception as error:  # noqa: BLE001  the documented fence
                    self._report(error)
                    units = None
                if units is not None:
                    self._left -= units
                elif queue and queue[0] is steps:
                    queue.popleft()
        finally:
            self._running = False
            self.pending = bool(self._failover or self._rest)
