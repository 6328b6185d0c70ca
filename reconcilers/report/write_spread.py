"""The time over which the agents of a cluster spread writes that can wait.

A change of one Service changes the number of routes on every node. Every agent waits for a random part
of the spread, which grows with the cluster, so that all agents together write at a constant rate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

COUNT_INTERVAL_SECONDS: Final = 60.0
"""Between two writes of one object that change nothing but numbers, at the least."""
NODES_PER_SECOND: Final = 15.0
"""Agents that write in a second after a change that concerns all of them."""


@final
class WriteSpread:
    """The pauses of one agent before writes that can wait."""

    def __init__(self, random: Callable[[], float], nodes: Callable[[], int]) -> None:
        """``random`` returns a number from 0 to 1, ``nodes`` the number of nodes of the cluster."""
        self._random = random
        self._nodes = nodes

    def due(self, now: float, last: float) -> float:
        """Return when a difference that was noticed now is written, in seconds of the caller's clock.

        ``last`` is the time of the last such write.
        """
        spread = self._nodes() / NODES_PER_SECOND
        return max(last + COUNT_INTERVAL_SECONDS, now) + self._random() * spread
