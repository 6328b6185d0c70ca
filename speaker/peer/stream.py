"""Octets into messages (RFC 4271 section 4.1), in whatever pieces they come.

A message that comes in many pieces is put together once, when it is whole. Must never hold more
than one message and what came with its last piece.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, final

from speaker.iana import MessageType
from speaker.message import HEADER_SIZE, MARKER, check_header
from speaker.negotiated import MAX_MESSAGE

_header: Final = struct.Struct("!16sHB").unpack_from
_UPDATE: Final = int(MessageType.UPDATE)
_MINIMUM: Final = HEADER_SIZE + 4
"""Octets of the shortest UPDATE. Those are looked at here: they are what comes in numbers."""


@final
class Stream:
    """The receiving side of one connection."""

    __slots__ = ("_fragments", "_have", "_need", "maximum")

    def __init__(self, maximum: int = MAX_MESSAGE) -> None:
        self.maximum = maximum
        """Octets of the longest message that the peer may send; may change between messages."""
        self._fragments: list[bytes] = []
        self._have = 0
        self._need = HEADER_SIZE

    def messages(self, data: bytes) -> Iterator[tuple[int, list[bytes]]]:
        """Take octets and yield the messages that are whole: a type, and bodies of that type.

        UPDATEs in a row come together, any other message alone. Who stops taking messages gives up
        the stream. Raises `NotificationError` for a header that cannot be, after what was before it.
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
        updates: list[bytes] = []
        while size - position >= HEADER_SIZE:
            marker, length, kind = _header(data, position)
            usual = kind == _UPDATE and _MINIMUM <= length <= self.maximum and marker == MARKER
            if not usual:
                if updates:
                    yield _UPDATE, updates
                    updates = []
                kind, length = check_header(data, position, self.maximum)
            end = position + length
            if end > size:
                need = length
                break
            body = data[position + HEADER_SIZE : end]
            position = end
            if usual:
                updates.append(body)
            else:
                yield kind, [body]
        if updates:
            yield _UPDATE, updates
        if position < size:
            rest = data[position:]
            self._fragments.append(rest)
            self._have = len(rest)
            self._need = need
