"""The pace of a fleet: what the agents of a cluster share of an API server.

A change of one Service changes the number of routes on every node. Writes of states come
after a random part of a spread, which grows with the cluster, so that all agents together write at a
constant rate. Numbers alone wait for longer: an interval that grows with the cluster, too, in which the
changes of many Services are one write. Requests have a rate, of each agent and of all together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from reconcilers.token_bucket import TokenBucket

COUNT_INTERVAL_SECONDS: Final = 60.0
"""Between two writes of one object that change nothing but numbers, at the least."""
NODES_PER_SECOND: Final = 15.0
"""Agents that write in a second after a change that concerns all of them."""
COUNT_SECONDS_PER_NODE: Final = 15.0
"""The longest wait of a number grows by this for each node of the cluster: in a cluster whose Services
change all the time, all agents together write numbers about once in ten seconds ..."""
LONGEST_COUNT_SECONDS: Final = 3600.0
"""... up to 240 nodes; in larger clusters each agent writes them once in 45 minutes."""
AGENT_RATE: Final = 10.0
"""Writes of one kind in a second, of one agent at the most."""
CLUSTER_RATE: Final = 500.0
"""Writes of one kind in a second, of all agents together at the most."""
BURST: Final = 20.0
"""Writes without a pause after a time without any."""


def count_interval(nodes: int) -> float:
    """Return the longest pause between writes of a number, in seconds, in a fleet of so many nodes."""
    return min(nodes * COUNT_SECONDS_PER_NODE, LONGEST_COUNT_SECONDS)


@final
class WriteSpread:
    """The pauses of one agent before writes that can wait."""

    def __init__(self, random: Callable[[], float], nodes: Callable[[], int]) -> None:
        """``random`` returns a number from 0 to 1, ``nodes`` the number of nodes of the cluster."""
        self._random = random
        self._nodes = nodes

    def due(self, now: float, last: float) -> float:
        """Return when one agent of the fleet writes a difference noticed now, by the caller's clock.

        ``last`` is the time of the last such write.
        """
        spread = self._nodes() / NODES_PER_SECOND
        return max(last + COUNT_INTERVAL_SECONDS, now) + self._random() * spread

    def counts_due(self, now: float, last: float) -> float:
        """Return when one agent of the fleet writes a difference of numbers alone, noticed now.

        Half of the interval at least, and a random part of the other half.
        """
        interval = count_interval(self._nodes())
        wait = interval * (1 + self._random()) / 2
        return max(last + COUNT_INTERVAL_SECONDS, now + wait)


@final
class RequestRate:
    """The rate of an agent's requests, which falls with the number of nodes."""

    def __init__(self, nodes: Callable[[], int]) -> None:
        """``nodes`` returns the number of nodes of the cluster."""
        self._nodes = nodes
        self._bucket = TokenBucket(BURST, AGENT_RATE)

    def wait(self, now: float) -> float:
        """Return the seconds until the fleet's pace permits the next request; 0.0 for now."""
        self._bucket.rate = min(AGENT_RATE, CLUSTER_RATE / max(1, self._nodes()))
        return self._bucket.pause(now)

    def take(self) -> None:
        """Take a token for a request from the fleet's rate."""
        self._bucket.take()
