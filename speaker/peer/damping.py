"""How long a peer stays in Idle after a session (RFC 4271 section 8.1.1, peer oscillation damping).

Pure arithmetic: a peer whose session was stable starts again at once; a peer whose sessions keep
failing waits twice as long each time.
"""

from __future__ import annotations

import random
from typing import Final

STABLE_SECONDS: Final = 30.0
"""Time in Established after which a session is stable."""
MAX_IDLE_HOLD_SECONDS: Final = 60.0


class Damping:
    """The consecutive failures of one peer."""

    __slots__ = ("_failures", "_rng")

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._failures = 0

    def reset(self) -> None:
        """Set the count of failures to zero: the configuration changed."""
        self._failures = 0

    def idle_hold(self, first: float, established_for: float | None, *, lost: bool) -> float:
        """Return the idle hold time in seconds.

        ``first`` is the configured idle hold time, ``established_for`` the duration of the session
        in Established (None: never reached), ``lost`` whether it ended without a protocol error.
        """
        if established_for is not None and established_for >= STABLE_SECONDS:
            self._failures = 0
            if lost:
                return 0.0
        pause = min(first * 2.0**self._failures, max(MAX_IDLE_HOLD_SECONDS, first))
        self._failures = min(self._failures + 1, 16)
        return pause * self._rng.uniform(0.75, 1.0)


def retry_after(failures: int, connect_retry_time: float) -> float:
    """Return the seconds until the next connection attempt, after consecutive failed ones.

    1, 2, 4 ... seconds up to the configured connect-retry time: a router that restarts is reached
    soon, and an absent one is tried rarely.
    """
    return float(min(2.0 ** max(0, min(failures - 1, 30)), connect_retry_time))
