"""BGP messages of a pcap or pcapng file, with Ethernet (also VLAN tags), Linux cooked or raw IP.

Each direction of each TCP connection is reassembled by its sequence numbers and split into messages at
their markers. The two OPENs of a connection determine how its other messages are decoded. Not a general
dissector: packets that are not BGP over TCP are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from resources.given_file import read_given
from speaker.errors import NotificationError
from speaker.iana import MessageType
from speaker.message import HEADER_SIZE, MARKER, Open
from speaker.message.open import decode_open
from speaker.negotiated import Negotiated, negotiate

_ETHERNET, _RAW, _COOKED, _COOKED2, _NULL = 1, 101, 113, 276, 0
_MAGIC = {
    b"\xd4\xc3\xb2\xa1": "<",
    b"\xa1\xb2\xc3\xd4": ">",
    b"\x4d\x3c\xb2\xa1": "<",
    b"\xa1\xb2\x3c\x4d": ">",
}


_SECTION, _INTERFACE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 3, 6
"""Block types of pcapng (draft-ietf-opsawg-pcapng)."""
_BYTE_ORDER_MAGIC = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}

Flow = tuple[bytes, int, bytes, int]
"""One direction of a connection: source address and port, destination address and port."""


class NotACapture(Exception):  # noqa: N818  named after the fault
    """A file that is neither pcap nor pcapng, or has an unknown link type."""


class Segment(NamedTuple):
    """One TCP segment with octets."""

    flow: Flow
    sequence: int
    data: bytes


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the link type and the octets of each packet. Raises `NotACapture`."""
    if data[:4] == _SECTION.to_bytes(4, "big"):
        yield from _packets_of_blocks(data)
        return
    order = _MAGIC.get(data[:4])
    if order is None or len(data) < 24:
        raise NotACapture("neither a pcap nor a pcapng file")
    (link,) = struct.unpack_from(f"{order}I", data, 20)
    position = 24
    while position + 16 <= len(data):
        (size,) = struct.unpack_from(f"{order}I", data, position + 8)
        yield link & 0xFFFF, data[position + 16 : position + 16 + size]
        position += 16 + size


def _packets_of_blocks(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the packets of a pcapng file; a file that ends within a block ends there."""
    order, links = "<", list[int]()
    position = 0
    while position + 12 <= len(data):
        kind = int.from_bytes(data[position : position + 4], "big")
        if kind == _SECTION:
            byte_order = _BYTE_ORDER_MAGIC.get(data[position + 8 : position + 12])
            if byte_order is None:
                raise NotACapture("a section of the pcapng file has no byte order")
            order, links = byte_order, []
        kind, size = struct.unpack_from(f"{order}II", data, position)
        body = data[position + 8 : position + size - 4]
        if size < 12 or size % 4 or position + size > len(data):
            return
        position += size
        if kind == _INTERFACE and len(body) >= 8:
            links.append(struct.unpack_from(f"{order}H", body)[0])
        elif kind == _ENHANCED and len(body) >= 20:
            interface, _, _, captured = struct.unpack_from(f"{order}IIII", body)
            if interface < len(links):
                yield links[interface], body[20 : 20 + captured]
        elif kind == _SIMPLE and len(body) >= 4 and links:
            (length,) = struct.unpack_from(f"{order}I", body)
            yield links[0], body[4 : 4 + length]


def _network(link: int, packet: bytes) -> bytes:
    if link == _ETHERNET:
        at = 12
        while packet[at : at + 2] in (b"\x81\x00", b"\x88\xa8"):
            at += 4
        return packet[at + 2 :]
    if link == _COOKED:
        return packet[16:]
    if link == _COOKED2:
        return packet[20:]
    if link == _NULL:
        return packet[4:]
    if link in (_RAW, 12, 14, 228, 229):
        return packet
    raise NotACapture(f"link type {link} is not known")


def _segment(packet: bytes) -> Segment | None:
    if len(packet) < 20:
        return None
    if packet[0] >> 4 == 4:
        header = (packet[0] & 0x0F) * 4
        total = int.from_bytes(packet[2:4], "big")
        protocol, source, target = packet[9], packet[12:16], packet[16:20]
        payload = packet[header : total or None]
    elif packet[0] >> 4 == 6 and len(packet) >= 40:
        protocol, source, target = packet[6], packet[8:24], packet[24:40]
        payload = packet[40 : 40 + int.from_bytes(packet[4:6], "big")]
    else:
        return None
    if protocol != 6 or len(payload) < 20:
        return None
    ports = int.from_bytes(payload[:2], "big"), int.from_bytes(payload[2:4], "big")
    data = payload[(payload[12] >> 4) * 4 :]
    if not data:
        return None
    sequence = int.from_bytes(payload[4:8], "big")
    return Segment((source, ports[0], target, ports[1]), sequence, data)


def messages(path: Path) -> Iterator[tuple[bytes, Negotiated | None]]:
    """Yield whole messages, each direction of a connection in order, with the session's parameters.

    None for a connection of which the capture does not have both OPENs. Raises `NotACapture`.
    """
    flows: dict[Flow, dict[int, bytes]] = {}
    for link, packet in _packets(read_given(path)):
        segment = _segment(_network(link, packet))
        if segment is not None:
            pieces = flows.setdefault(segment.flow, {})
            if len(segment.data) > len(pieces.get(segment.sequence, b"")):
                pieces[segment.sequence] = segment.data
    by_flow = {flow: list(_cut(_assemble(pieces))) for flow, pieces in flows.items()}
    opens = {flow: _open_of(sent) for flow, sent in by_flow.items()}
    for flow, sent in by_flow.items():
        source, port, target, target_port = flow
        session = _session(opens.get((target, target_port, source, port)), opens[flow])
        for message in sent:
            yield message, session


def _open_of(sent: Iterable[bytes]) -> Open | None:
    """Return the first OPEN of a direction that can be decoded."""
    for message in sent:
        if len(message) > HEADER_SIZE and message[HEADER_SIZE - 1] == MessageType.OPEN:
            try:
                return decode_open(message[HEADER_SIZE:])
            except NotificationError:
                continue
    return None


def _session(receiver: Open | None, sender: Open | None) -> Negotiated | None:
    """Return the parameters with which the receiver decodes the sender's messages."""
    if receiver is None or sender is None:
        return None
    return negotiate(
        local_asn=receiver.asn,
        peer_asn=sender.asn,
        local_capabilities=receiver.capabilities,
        peer_capabilities=sender.capabilities,
        local_hold_time=receiver.hold_time,
        peer_hold_time=sender.hold_time,
        keepalive_time=receiver.hold_time // 3,
        local_router_id=receiver.router_id,
        peer_router_id=sender.router_id,
        # A route server does not prepend its AS (RFC 7947), with or without a role (RFC 9234).
        enforce_first_as=False,
    )


def _assemble(pieces: dict[int, bytes]) -> bytes:
    stream = bytearray()
    expected: int | None = None
    for sequence in sorted(pieces):
        data = pieces[sequence]
        if expected is not None and sequence < expected:
            data = data[expected - sequence :]
        stream += data
        expected = max(expected or 0, sequence + len(pieces[sequence]))
    return bytes(stream)


def _cut(stream: bytes) -> Iterator[bytes]:
    position = stream.find(MARKER)
    while position >= 0 and position + HEADER_SIZE <= len(stream):
        length = int.from_bytes(stream[position + 16 : position + 18], "big")
        if length < HEADER_SIZE:
            yield stream[position : position + HEADER_SIZE]
            position = stream.find(MARKER, position + 1)
            continue
        yield stream[position : position + length]
        position = stream.find(MARKER, position + length)
