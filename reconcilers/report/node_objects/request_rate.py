"""The rate of an agent's requests: its own limit, and its share of a limit for the whole cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

AGENT_RATE: Final = 10.0
"""Writes of one kind in a second, of one agent at the most."""
CLUSTER_RATE: Final = 500.0
"""Writes of one kind in a second, of all agents together at the most."""
SHORTEST_PAUSE: Final = 0.001
"""Seconds; less is below the precision of a clock."""
BURST: Final = 20.0
"""Writes without a pause after a time without any."""


@final
class RequestRate:
    """A token bucket whose rate falls with the number of nodes."""

    def __init__(self, nodes: Callable[[], int]) -> None:
        """``nodes`` returns the number of nodes of the cluster."""
        self._nodes = nodes
        self._tokens = BURST
        self._counted_at = 0.0

    def wait(self, now: float) -> float:
        """Return the seconds until the next request may be sent; 0.0 for now."""
        rate = min(AGENT_RATE, CLUSTER_RATE / max(1, self._nodes()))
        self._tokens = min(BURST, self._tokens + max(0.0, now - self._counted_at) * rate)
        self._counted_at = now
        return 0.0 if self._tokens >= 1.0 else max(SHORTEST_PAUSE, (1.0 - self._tokens) / rate)

    def take(self) -> None:
        """Count a request."""
        self._tokens -= 1.0
