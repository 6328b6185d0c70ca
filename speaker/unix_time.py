"""The Unix time of moments of a monotonic clock: of the sessions of BGP and of BFD.

Sessions live by a clock that no step changes. People and programs read Unix time and count ages from
it. So one offset serves all moments: each has the same Unix time whenever it is read, and moments of
the past move with a step of the system's clock, as their ages do not change by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

STEP_SECONDS: Final = 0.01
"""The least step of the system's clock that changes the offset."""


class UnixTime:
    """The offset of Unix time against a monotonic clock, both in seconds."""

    __slots__ = ("_clock", "_offset", "_wall_clock")

    def __init__(self, clock: Callable[[], float], wall_clock: Callable[[], float]) -> None:
        self._clock = clock
        self._wall_clock = wall_clock
        self._offset: float | None = None

    def offset(self) -> float:
        """Return the seconds to add to a moment of the monotonic clock.

        The same ones until a clock is set: no moment depends on how long the process waited between
        its readings of the two clocks.
        """
        before, wall, known = self._clock(), self._wall_clock(), self._offset
        most = wall - before
        if known is None or not most - STEP_SECONDS <= known <= most + STEP_SECONDS:
            least = wall - self._clock()
            if known is None or not least - STEP_SECONDS <= known <= most:
                known = self._offset = (least + most) / 2
        return known
