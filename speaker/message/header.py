"""The header of every message (RFC 4271 section 4.1), and cutting a byte stream into messages."""

from __future__ import annotations

from typing import Final, final

from speaker.errors import header_error
from speaker.iana import HeaderSubcode, MessageType
from speaker.negotiated import MAX_MESSAGE

MARKER: Final = b"\xff" * 16
HEADER_SIZE: Final = 19

_MINIMUM: Final = {
    MessageType.OPEN: 29,
    MessageType.UPDATE: 23,
    MessageType.NOTIFICATION: 19,  # a short one is not answered either (RFC 4271 section 6.4)
    MessageType.KEEPALIVE: 19,
    MessageType.ROUTE_REFRESH: 19,  # its length error has a code of its own (RFC 7313 section 5)
}
_NEVER_EXTENDED: Final = frozenset({MessageType.OPEN, MessageType.KEEPALIVE})


def frame_message(kind: int, body: bytes) -> bytes:
    """Put the header before a body."""
    return b"".join((MARKER, (HEADER_SIZE + len(body)).to_bytes(2, "big"), bytes((kind,)), body))


KEEPALIVE: Final = frame_message(MessageType.KEEPALIVE, b"")


def check_header(data: bytes, position: int = 0, maximum: int = MAX_MESSAGE) -> tuple[int, int]:
    """Read the header at a position: the type, and the length of the whole message.

    Raises `NotificationError` as RFC 4271 section 6.1 has it. At least 19 octets have to be there.
    """
    if data[position : position + 16] != MARKER:
        raise header_error(HeaderSubcode.CONNECTION_NOT_SYNCHRONIZED, detail="bad marker")
    kind = data[position + 18]
    octets = data[position + 16 : position + 18]
    length = int.from_bytes(octets, "big")
    minimum = _MINIMUM.get(kind)  # type: ignore[call-overload]  # a plain int is its own key
    if minimum is None:
        # RFC 8654 section 4: a length beyond the limit comes first whatever the type.
        if not HEADER_SIZE <= length <= maximum:
            raise header_error(
                HeaderSubcode.BAD_MESSAGE_LENGTH, octets, f"{length} octets in a message"
            )
        raise header_error(HeaderSubcode.BAD_MESSAGE_TYPE, bytes((kind,)), f"type {kind}")
    limit = MAX_MESSAGE if kind in _NEVER_EXTENDED else maximum
    if not minimum <= length <= limit or (kind == MessageType.KEEPALIVE and length != HEADER_SIZE):
        name = MessageType(kind).name.replace("_", "-")
        raise header_error(
            HeaderSubcode.BAD_MESSAGE_LENGTH, octets, f"{length} octets in a message of type {name}"
        )
    return kind, length


@final
class Framer:
    """Cuts octets, in whatever pieces they come, into messages."""

    __slots__ = ("_buffer", "maximum")

    def __init__(self, maximum: int = MAX_MESSAGE) -> None:
        self._buffer = b""
        self.maximum = maximum

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Take octets; the type and body of each message that is complete.

        Raises `NotificationError` for a bad header; what came before it is lost with the session.
        """
        buffer = self._buffer + data if self._buffer else data
        found: list[tuple[int, bytes]] = []
        position = 0
        while len(buffer) - position >= HEADER_SIZE:
            kind, length = check_header(buffer, position, self.maximum)
            end = position + length
            if end > len(buffer):
                break
            found.append((kind, buffer[position + HEADER_SIZE : end]))
            position = end
        self._buffer = buffer[position:]
        return found
