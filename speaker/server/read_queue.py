"""Octets that come in quantities: given on in small pieces, so that nobody else has to wait for long.

A peer that sends its table, or floods, is heard for a moment in each turn of the event loop; what is
short is never kept here. It must never hold more of a connection than one read.
"""

from __future__ import annotations

from collections import deque
from typing import Final

PIECE: Final = 4096
"""Octets that are given on at a time where somebody may wait; what is no longer is no bulk."""
LONG_PIECE: Final = 8 * PIECE
"""The same where nobody does: all of a read."""


class ReadQueue:
    """What waits, by connection, those that have waited longest first."""

    __slots__ = ("_order", "_waiting")

    def __init__(self) -> None:
        self._order: deque[int] = deque()
        self._waiting: dict[int, tuple[bytes, int]] = {}
        """What was read, and from where on it has not been given on."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __contains__(self, connection: int) -> bool:
        return connection in self._waiting

    def put(self, connection: int, data: bytes) -> None:
        """Keep what a connection of which nothing waits has said."""
        self._waiting[connection] = (data, 0)
        self._order.append(connection)

    def next(self, piece: int = PIECE) -> tuple[int, bytes] | None:
        """Take the next piece, of each connection in turn; None when there is none."""
        while self._order:
            connection = self._order.popleft()
            waiting = self._waiting.get(connection)
            if waiting is None:
                continue
            data, start = waiting
            end = start + piece
            if end < len(data):
                self._waiting[connection] = (data, end)
                self._order.append(connection)
            else:
                del self._waiting[connection]
            return connection, data[start:end]
        return None

    def take(self, connection: int) -> bytes:
        """Take all that a connection has said."""
        data, start = self._waiting.pop(connection, (b"", 0))
        return data[start:]
