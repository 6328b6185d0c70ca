"""The header of every message (RFC 4271 section 4.1); `speaker.peer.message_stream` splits a stream."""

from __future__ import annotations

from typing import Final

from speaker.errors import header_error
from speaker.iana import HeaderSubcode, MessageType
from speaker.negotiated import MAX_MESSAGE

MARKER: Final = b"\xff" * 16
HEADER_SIZE: Final = 19

_MINIMUM: Final = {
    MessageType.OPEN: 29,
    MessageType.UPDATE: 23,
    MessageType.NOTIFICATION: 19,  # no NOTIFICATION in reply to a short one (RFC 4271 section 6.4)
    MessageType.KEEPALIVE: 19,
    MessageType.ROUTE_REFRESH: 19,  # its length has an error code of its own (RFC 7313 section 5)
}
_NEVER_EXTENDED: Final = frozenset({MessageType.OPEN, MessageType.KEEPALIVE})


def frame_message(kind: int, body: bytes) -> bytes:
    """Return a message of a type with the body: header, then body."""
    return b"".join((MARKER, (HEADER_SIZE + len(body)).to_bytes(2, "big"), bytes((kind,)), body))


KEEPALIVE: Final = frame_message(MessageType.KEEPALIVE, b"")


def check_header(data: bytes, position: int = 0, maximum: int = MAX_MESSAGE) -> tuple[int, int]:
    """Return the type and the length of the message whose header is at ``position``.

    ``data`` has the 19 octets of the header; ``maximum`` is the largest message in octets. Raises
    `NotificationError` (RFC 4271 section 6.1).
    """
    if data[position : position + 16] != MARKER:
        raise header_error(HeaderSubcode.CONNECTION_NOT_SYNCHRONIZED, detail="bad marker")
    kind = data[position + 18]
    octets = data[position + 16 : position + 18]
    length = int.from_bytes(octets, "big")
    minimum = _MINIMUM.get(kind)  # type: ignore[call-overload]  # a plain int is its own key
    if minimum is None:
        # RFC 8654 section 4: a length beyond the limit is the error, whatever the type.
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
