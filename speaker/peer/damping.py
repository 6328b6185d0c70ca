"""How long a peer stays in Idle after its session ended (RFC 4271 section 8.1.1, oscillation damping).

Pure arithmetic: a session that was stable begins again at once, one that keeps failing waits
twice as long each time.
"""

from __future__ import annotations

import random
from typing import Final

STABLE: Final = 30.0
"""Seconds in Established after which a session counts as having worked."""
LONGEST: Final = 60.0


class Damping:
    """The failures of one peer in a row."""

    __slots__ = ("_failures", "_rng")

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._failures = 0

    def forgive(self) -> None:
        """Forget the failures: the configuration is another one now."""
        self._failures = 0

    def pause(self, first: float, established_for: float | None, *, lost: bool) -> float:
        """Return the seconds to wait in Idle.

        ``first`` is the configured idle-hold time, ``established_for`` how long the session was
        up (None: never), ``lost`` whether it ended without an error of the protocol.
        """
        if established_for is not None and established_for >= STABLE:
            self._failures = 0
            if lost:
                return 0.0
        pause = min(first * 2.0**self._failures, max(LONGEST, first))
        self._failures = min(self._failures + 1, 16)
        return pause * self._rng.uniform(0.75, 1.0)


def retry_after(failures: int, connect_retry_time: float) -> float:
    """Return the seconds until the next attempt to connect, after so many that failed in a row.

    1, 2, 4 ... seconds up to the configured connect-retry time: a router that restarts is found
    again soon, and one that is away is not bothered.
    """
    return float(min(2.0 ** max(0, min(failures - 1, 30)), connect_retry_time))
