"""The time over which the agents of a cluster spread writes that can wait.

A change of one Service changes the number of routes on every node. Writes of states come
after a random part of a spread, which grows with the cluster, so that all agents together write at a
constant rate. Numbers alone wait for longer: an interval that grows with the cluster, too, in which the
changes of many Services are one write. A number that becomes zero or is zero no more, and the numbers
after a change of state, wait for less.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, final

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


@final
class CountDelay:
    """When a difference of nothing but numbers of one object is written."""

    def __init__(self, spread: WriteSpread) -> None:
        self._spread = spread
        self._written_at = -COUNT_INTERVAL_SECONDS
        self._due: float | None = None
        """When such a difference is written; None without one."""
        self._is_soon = False
        """True if that is a time for numbers that matter."""
        self._is_settling = False
        """True if a state was written, and no numbers after it: a new session has few routes."""

    def reset(self) -> None:
        """Note that nothing differs."""
        self._due = None

    def pause(
        self, wanted: dict[str, Any], stored: dict[str, Any], counts: Collection[str], now: float
    ) -> float:
        """Return the seconds until a difference is written, 0.0 for now.

        ``counts`` are the members of the JSON objects, at any depth, that are numbers.
        """
        if _without(wanted, counts) != _without(stored, counts):
            self._due, self._is_settling = None, True
            return 0.0
        last = self._written_at
        if self._due is None:
            self._due, self._is_soon = self._spread.counts_due(now, last), False
        matter = self._is_settling or _presence(wanted) != _presence(stored)
        if matter and not self._is_soon:
            self._is_soon = True
            self._due = min(self._due, self._spread.due(now, last))
        if now < self._due:
            return self._due - now
        self._due, self._written_at, self._is_settling = None, now, False
        return 0.0


def _without(value: object, names: Collection[str]) -> object:
    """Return a JSON value without the members of these names."""
    if isinstance(value, dict):
        return {key: _without(item, names) for key, item in value.items() if key not in names}
    if isinstance(value, list):
        return [_without(item, names) for item in value]
    return value


def _presence(value: object) -> object:
    """Return a JSON value in which numbers are true, or false for zero."""
    if isinstance(value, dict):
        return {key: _presence(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_presence(item) for item in value]
    return bool(value) if isinstance(value, int | float) else value
