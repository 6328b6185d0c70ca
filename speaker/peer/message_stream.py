"""Octets into messages (RFC 4271 section 4.1), in pieces of any size.

A message in many pieces is joined once, when it is complete. Must never hold more than one message
and the octets that came with its last piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from speaker.iana import MessageType
from speaker.message import HEADER_SIZE, check_header
from speaker.negotiated import MAX_MESSAGE
from speaker.peer.update_run import take_updates

_UPDATE: Final = int(MessageType.UPDATE)


@final
class MessageStream:
    """The receiving side of one connection."""

    __slots__ = ("_fragments", "_have", "_need", "maximum")

    def __init__(self, maximum: int = MAX_MESSAGE) -> None:
        self.maximum = maximum
        """Octets of the longest message that the peer may send; may change between messages."""
        self._fragments: list[bytes] = []
        self._have = 0
        self._need = HEADER_SIZE

    def messages(self, data: bytes) -> Iterator[tuple[int, list[bytes]]]:
        """Receive octets and yield the complete messages: a type, and bodies of that type.

        UPDATEs in a row are yielded together (`speaker.peer.update_run`), any other message alone.
        A caller that stops iterating must not use the stream again. Raises `NotificationError` for
        a bad header (RFC 4271 section 6.1), after the messages before it.
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
            updates: list[bytes] = []
            position = take_updates(data, position, self.maximum, updates)
            if updates:
                yield _UPDATE, updates
                continue
            kind, length = check_header(data, position, self.maximum)
            end = position + length
            if end > size:
                need = length
                break
            body = data[position + HEADER_SIZE : end]
            position = end
            yield kind, [body]
        if position < size:
            rest = data[position:]
            self._fragments.append(rest)
            self._have = len(rest)
            self._need = need
