"""A monotonic clock and the system's, in virtual time, and what passes between their readings."""

from __future__ import annotations


class TwoClocks:
    """Both clocks in seconds."""

    def __init__(self, now: float = 1000.0, ahead: float = 1_700_000_000.0) -> None:
        self.now = now
        self.ahead = ahead
        """Unix time against the monotonic clock: a step of the system's clock changes it."""
        self.wait = 0.0
        """How long the process waits before each reading."""

    def clock(self) -> float:
        self.now += self.wait
        return self.now

    def microseconds(self) -> int:
        return round(self.clock() * 1_000_000)

    def wall_clock(self) -> float:
        self.now += self.wait
        return self.now + self.ahead
