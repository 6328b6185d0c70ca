"""Fast path of `speaker.peer.message_stream`: a run of UPDATEs in the octets of one read.

A full table arrives as thousands of UPDATEs in a row. Their headers are read here with one unpacking
each, and their bodies are handed on together. Slow path: `MessageStream.messages`, which applies
`speaker.message.check_header` to one message at a time; both must yield the same bodies and leave
the same octets (tests/speaker/peer/test_message_stream.py).
"""

from __future__ import annotations

import struct
from typing import Final

from speaker.iana import MessageType
from speaker.message import HEADER_SIZE, MARKER

_header: Final = struct.Struct("!16sHB").unpack_from
_UPDATE: Final = int(MessageType.UPDATE)
_MIN_UPDATE: Final = HEADER_SIZE + 4
"""Octets of the shortest UPDATE (RFC 4271 section 4.3)."""


def take_updates(data: bytes, position: int, maximum: int, bodies: list[bytes]) -> int:
    """Append the bodies of the complete, well-formed UPDATEs from a position on, in a row.

    ``maximum`` is the length of the longest message in octets. Returns the position behind them;
    any other message, a bad header and an incomplete message are left to the slow path.
    """
    size = len(data)
    while size - position >= HEADER_SIZE:
        marker, length, kind = _header(data, position)
        end = position + length
        if (
            kind != _UPDATE
            or end > size
            or not _MIN_UPDATE <= length <= maximum
            or marker != MARKER
        ):
            break
        bodies.append(data[position + HEADER_SIZE : end])
        position = end
    return position
