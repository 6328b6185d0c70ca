"""Octets of long reads, processed in pieces, so that no other connection waits for long.

A peer that sends its table, or a flood, is served for a moment in each turn of the event loop; short
reads are never queued. Must never hold more of a connection than one read.
"""

from __future__ import annotations

from collections import deque
from typing import Final

PIECE: Final = 4096
"""Octets of a piece while other peers send short messages; a shorter read is not queued."""
LONG_PIECE: Final = 8 * PIECE
"""Octets of a piece otherwise: a whole read."""


class ReadQueue:
    """The queued reads, by connection, the longest waiting first."""

    __slots__ = ("_order", "_waiting")

    def __init__(self) -> None:
        self._order: deque[int] = deque()
        self._waiting: dict[int, tuple[bytes, int]] = {}
        """The octets of the read, and the offset of the first unprocessed one."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __contains__(self, connection: int) -> bool:
        return connection in self._waiting

    def put(self, connection: int, data: bytes) -> None:
        """Queue a read of a connection that has none queued."""
        self._waiting[connection] = (data, 0)
        self._order.append(connection)

    def next(self, piece: int = PIECE) -> tuple[int, bytes] | None:
        """Return the next piece, of each connection in turn; None when the queue is empty."""
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
        """Remove a connection's read and return its unprocessed octets."""
        data, start = self._waiting.pop(connection, (b"", 0))
        return data[start:]
