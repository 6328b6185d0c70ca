"""The time over which the agents of a cluster spread writes that can wait.

A change of one Service changes the number of routes on every node. Writes of states come
after a random part of a spread, which grows with the cluster, so that all agents together write at a
constant rate. Numbers alone wait for longer: an interval that grows with the cluster, too, in which the
changes of many Services are one write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

COUNT_INTERVAL_SECONDS: Final = 60.0
"""Between two writes of one object that change nothing but numbers, at the least."""
NODES_PER_SECOND: Final = 15.0
"""Agents that write in a second after a change that concerns all of them."""
COUNT_SECONDS_PER_NODE: Final = 15.0
"""The longest wait of a number grows by this for each node of the cluster: in a cluster whose Services
change all the time, all agents together write numbers about once in ten seconds ..."""
LONGEST_COUNT_SECONDS: Final = 3600.0
"""... up to 240 nodes; in larger clusters each agent writes them once in 45 minutes."""


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

    def counts_due(self, now: float, last: float) -> float:
        """Return when a difference of nothing but numbers that was noticed now is written.

        Half of the interval at least, and a random part of the other half.
        """
        interval = min(self._nodes() * COUNT_SECONDS_PER_NODE, LONGEST_COUNT_SECONDS)
        wait = interval * (1 + self._random()) / 2
        return max(last + COUNT_INTERVAL_SECONDS, now + wait)
