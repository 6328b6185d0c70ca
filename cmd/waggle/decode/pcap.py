"""BGP messages of a capture file: pcap, with Ethernet (also VLAN tags), Linux cooked or raw IP.

Each direction of each TCP connection is reassembled by its sequence numbers and split into messages at
their markers. Not a general dissector: packets that are not BGP over TCP are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from speaker.message import HEADER_SIZE, MARKER

BGP_PORT = 179
_ETHERNET, _RAW, _COOKED, _COOKED2, _NULL = 1, 101, 113, 276, 0
_MAGIC = {
    b"\xd4\xc3\xb2\xa1": "<",
    b"\xa1\xb2\xc3\xd4": ">",
    b"\x4d\x3c\xb2\xa1": "<",
    b"\xa1\xb2\x3c\x4d": ">",
}


class NotACapture(Exception):  # noqa: N818  named after the fault
    """A file that is not a pcap file, or one with a link type that is not known."""


class Segment(NamedTuple):
    """One TCP segment with octets."""

    flow: tuple[bytes, int, bytes, int]
    sequence: int
    data: bytes


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    order = _MAGIC.get(data[:4])
    if order is None or len(data) < 24:
        raise NotACapture(
            "not a pcap file (a pcapng file can be converted with tcpdump or editcap)"
        )
    (link,) = struct.unpack_from(f"{order}I", data, 20)
    position = 24
    while position + 16 <= len(data):
        (size,) = struct.unpack_from(f"{order}I", data, position + 8)
        yield link & 0xFFFF, data[position + 16 : position + 16 + size]
        position += 16 + size


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


def messages(path: Path) -> Iterator[bytes]:
    """Yield whole messages, each direction of a connection in order. Raises `NotACapture`."""
    flows: dict[tuple[bytes, int, bytes, int], dict[int, bytes]] = {}
    for link, packet in _packets(path.read_bytes()):
        segment = _segment(_network(link, packet))
        if segment is not None:
            pieces = flows.setdefault(segment.flow, {})
            if len(segment.data) > len(pieces.get(segment.sequence, b"")):
                pieces[segment.sequence] = segment.data
    for pieces in flows.values():
        yield from _cut(_assemble(pieces))


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
