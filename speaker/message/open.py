"""OPEN (RFC 4271 section 4.2, RFC 5492, RFC 6793, RFC 9072): value, decoding, encoding.

Checks what holds for every OPEN. What depends on the peer, such as its AS number, is checked in
`speaker.peer.open_exchange`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from speaker.capability import (
    Capability,
    FourOctetAs,
    decode_capabilities,
    encode_capabilities,
)
from speaker.errors import Truncated, open_error
from speaker.iana import AS_TRANS, MessageType, OpenSubcode
from speaker.message.header import frame_message
from speaker.wire import Reader

VERSION: Final = 4
_CAPABILITIES: Final = 2
_EXTENDED: Final = 255


class Open(msgspec.Struct, frozen=True, kw_only=True):
    """One OPEN; ``asn`` is that of the four-octet AS capability if present (RFC 6793)."""

    asn: int
    hold_time: int
    router_id: int
    capabilities: tuple[Capability, ...] = ()

    def encode(self) -> bytes:
        """Return the whole message; with extended parameters only if they need it (RFC 9072)."""
        octets = encode_capabilities(self.capabilities)
        if not octets:
            parameters = b"\0"
        elif len(octets) <= 253:
            parameters = bytes((len(octets) + 2, _CAPABILITIES, len(octets))) + octets
        else:
            body = bytes((_CAPABILITIES,)) + len(octets).to_bytes(2, "big") + octets
            parameters = bytes((_EXTENDED, _EXTENDED)) + len(body).to_bytes(2, "big") + body
        two_octets = self.asn if self.asn <= 0xFFFF else AS_TRANS
        return frame_message(
            MessageType.OPEN,
            b"".join(
                (
                    bytes((VERSION,)),
                    two_octets.to_bytes(2, "big"),
                    self.hold_time.to_bytes(2, "big"),
                    self.router_id.to_bytes(4, "big"),
                    parameters,
                )
            ),
        )


def _parameters(reader: Reader) -> list[tuple[int, bytes]]:
    length = reader.u8()
    # RFC 9072 section 2: the type of the first parameter marks the extended form, not the length.
    extended = reader.next == _EXTENDED
    if extended:
        reader.u8()
        length = reader.u16()
    body = Reader(reader.take(length))
    if reader.remaining:
        raise Truncated(f"{reader.remaining} octets behind the optional parameters")
    parameters = []
    while body.remaining:
        kind = body.u8()
        parameters.append((kind, body.take(body.u16() if extended else body.u8())))
    return parameters


def decode_open(body: bytes) -> Open:
    """Decode a body. Raises `NotificationError` (RFC 4271 section 6.2)."""
    try:
        reader = Reader(body)
        version = reader.u8()
        if version != VERSION:
            raise open_error(
                OpenSubcode.UNSUPPORTED_VERSION,
                VERSION.to_bytes(2, "big"),
                f"version {version}",
            )
        asn, hold_time, router_id = reader.u16(), reader.u16(), reader.u32()
        capabilities: list[Capability] = []
        for kind, value in _parameters(reader):
            if kind != _CAPABILITIES:
                raise open_error(
                    OpenSubcode.UNSUPPORTED_OPTIONAL_PARAMETER, detail=f"parameter {kind}"
                )
            capabilities += decode_capabilities(value)
    except Truncated as error:
        raise open_error(OpenSubcode.UNSPECIFIC, detail=str(error)) from None
    four = next((c.asn for c in reversed(capabilities) if isinstance(c, FourOctetAs)), None)
    if 0 in (asn, four):
        raise open_error(OpenSubcode.BAD_PEER_AS, detail="AS 0 (RFC 7607)")
    if hold_time in (1, 2):
        raise open_error(OpenSubcode.UNACCEPTABLE_HOLD_TIME, detail=f"a hold time of {hold_time} s")
    if not router_id:
        raise open_error(OpenSubcode.BAD_BGP_IDENTIFIER, detail="0.0.0.0 (RFC 6286)")
    return Open(
        asn=asn if four is None else four,
        hold_time=hold_time,
        router_id=router_id,
        capabilities=tuple(capabilities),
    )
