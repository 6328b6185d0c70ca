"""Connections that an instance turned away: all are counted, few are told.

Anybody who reaches the listening socket can make these, so that telling is limited and no address is
remembered.
"""

from __future__ import annotations

from typing import Final

from speaker.api import ConnectionsRefused

PAUSE: Final = 60.0
"""Seconds between two events of one instance."""


class RejectedConnections:
    """The count of one instance."""

    def __init__(self, instance: str) -> None:
        self.count = 0
        self._instance = instance
        self._last: float | None = None

    def add(self, address: str, reason: str, now: float) -> ConnectionsRefused | None:
        """Count one; the event where one is due again, with what was counted until now."""
        self.count += 1
        if self._last is not None and now - self._last < PAUSE:
            return None
        self._last = now
        return ConnectionsRefused(
            instance=self._instance, address=address, reason=reason, count=self.count
        )
