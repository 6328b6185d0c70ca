"""Connections that an instance rejected: all are counted, few are reported.

Any host that reaches the listening socket can cause them, so that reports are limited and no
address is stored.
"""

from __future__ import annotations

from typing import Final

from speaker.api import ConnectionsRefused

REPORT_INTERVAL_SECONDS: Final = 60.0
"""The least time between two events of one instance."""


class RejectedConnections:
    """The count of one instance."""

    def __init__(self, instance: str) -> None:
        self.count = 0
        self._instance = instance
        self._last: float | None = None

    def add(self, address: str, reason: str, now: float) -> ConnectionsRefused | None:
        """Count a connection; return an event with the count so far where one is due."""
        self.count += 1
        if self._last is not None and now - self._last < REPORT_INTERVAL_SECONDS:
            return None
        self._last = now
        return ConnectionsRefused(
            instance=self._instance, address=address, reason=reason, count=self.count
        )
