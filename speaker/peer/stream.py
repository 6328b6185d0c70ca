"""Octets into messages (RFC 4271 section 4.1), in whatever pieces they come.

A message that comes in many pieces is put together once, when it is whole. Must never hold more
than one message and what came with its last piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from speaker.message import HEADER_SIZE, check_header
from speaker.negotiated import MAX_MESSAGE


@final
class Stream:
    """The receiving side of one connection."""

    __slots__ = ("_fragments", "_have", "_need", "maximum")

    def __init__(self) -> None:
        self.maximum = MAX_MESSAGE
        """Octets of the longest message that the peer may send; may change between messages."""
        self._fragments: list[bytes] = []
        self._have = 0
        self._need = HEADER_SIZE

    def messages(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Take octets and yield type and body of each message that is whole.

        Who stops taking messages gives up the stream. Raises `NotificationError` for a header that
        cannot be.
        """
        if self._have:
            self._fragments.append(data)
            self._have += len(data)
            if self._have < self._need:
                return
            data = b"".join(self._fragments)
            self._fragments.clear()
            self._have = 0
        position = 0
        size = len(data)
        need = HEADER_SIZE
        while size - position >= HEADER_SIZE:
            kind, length = check_header(data, position, self.maximum)
            end = position + length
            if end > size:
                need = length
                break
            yield kind, data[position + HEADER_SIZE : end]
            position = end
        if position < size:
            rest = data[position:]
            self._fragments.append(rest)
            self._have = len(rest)
            self._need = need
