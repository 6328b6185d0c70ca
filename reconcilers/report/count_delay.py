"""When a status is written that differs in nothing but numbers of routes.

After an interval that grows with the cluster (`reconcilers.target.write_spread`). A number that becomes
zero or is zero no more, and the numbers after a change of state, wait for less.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, final

from reconcilers.target.write_spread import COUNT_INTERVAL_SECONDS, WriteSpread


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
        """Note that no count differs: no delay is pending."""
        self._due = None

    def pause(
        self, wanted: dict[str, Any], stored: dict[str, Any], counts: Collection[str], now: float
    ) -> float:
        """Return the delay of a difference of counts alone, in seconds, 0.0 for now.

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
