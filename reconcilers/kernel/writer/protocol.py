"""The messages of `protocol_messages` as octets; prefixes are octets behind the header."""

from __future__ import annotations

from typing import Final

from reconcilers.kernel.writer.protocol_messages import VERSIONS, FromWriter, ToWriter
from reconcilers.process.codec import Codec, ProtocolError

Message = ToWriter | FromWriter

CODEC: Final[Codec[Message]] = Codec(Message, VERSIONS)


def prefixes(octets: bytes) -> list[bytes]:
    """Cut concatenated prefixes of the writer's protocol apart. Raises `ProtocolError`."""
    decoded = []
    at, end = 0, len(octets)
    while at < end:
        last = at + 1 + ((octets[at] + 7) >> 3)
        if octets[at] > 128 or last > end:
            raise ProtocolError(f"no prefix at octet {at} of {end}")
        decoded.append(octets[at:last])
        at = last
    return decoded
