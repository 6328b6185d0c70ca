"""BGP messages of captures, whatever the link: packets, segments, the messages of each direction."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from speaker.message import MARKER
from waggle.commands.decode.pcap import NotACapture, messages

A, B = b"\x0a\0\0\1", b"\x0a\0\0\2"
A6, B6 = bytes(15) + b"\1", bytes(15) + b"\2"


def message(number: int, size: int = 19) -> bytes:
    """A message of an unknown type, as long as given."""
    return MARKER + struct.pack("!HB", size, 4) + bytes((number,)) * (size - 19)


def tcp(octets: bytes, sequence: int = 1000, *, offset: int = 5, port: int = 40000) -> bytes:
    head = struct.pack("!HHIIBBHHH", port, 179, sequence, 0, offset << 4, 0x18, 512, 0, 0)
    return head + bytes(offset * 4 - 20) + octets


def ipv4(payload: bytes, *, options: int = 0, protocol: int = 6, total: int | None = None) -> bytes:
    header = 20 + options
    size = header + len(payload) if total is None else total
    head = struct.pack("!BBHHHBBH", 0x40 | header // 4, 0, size, 0, 0, 64, protocol, 0)
    return head + A + B + bytes(options) + payload


def ipv6(payload: bytes, *, protocol: int = 6) -> bytes:
    return struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64) + A6 + B6 + payload


def pcap(link: int, *packets: bytes) -> bytes:
    octets = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)
    for packet in packets:
        octets += struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet
    return octets


def block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


SECTION = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))


def raw_interface(link: int = 101) -> bytes:
    return block(1, struct.pack("<HHI", link, 0, 0))


def read(tmp_path: Path, octets: bytes) -> list[bytes]:
    path = tmp_path / "capture"
    path.write_bytes(octets)
    return [octets for octets, _ in messages(path)]


ETHERNET = bytes(12)
ONE = message(1)


@pytest.mark.parametrize(
    ("link", "head"),
    [
        (1, ETHERNET + b"\x08\0"),
        (1, ETHERNET + b"\x81\0\0\7\x08\0"),
        (1, ETHERNET + b"\x88\xa8\0\7\x81\0\0\1\x08\0"),
        (113, bytes(16)),
        (276, bytes(20)),
        (0, bytes(4)),
        (101, b""),
        (12, b""),
        (14, b""),
        (228, b""),
        (229, b""),
    ],
    ids=[
        "Ethernet",
        "VLAN",
        "QinQ",
        "cooked",
        "cooked 2",
        "null",
        "raw",
        "12",
        "14",
        "IPv4",
        "IPv6",
    ],
)
def test_the_packet_is_behind_the_header_of_its_link(
    tmp_path: Path, link: int, head: bytes
) -> None:
    assert read(tmp_path, pcap(link, head + ipv4(tcp(ONE)))) == [ONE]
    assert read(tmp_path, pcap(link, head + ipv6(tcp(ONE)))) == [ONE]


def test_an_unknown_link_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotACapture, match="link type 147 is not known"):
        read(tmp_path, pcap(147, ipv4(tcp(ONE))))


def test_headers_with_options_end_where_they_state(tmp_path: Path) -> None:
    assert read(tmp_path, pcap(101, ipv4(tcp(ONE, offset=8), options=8))) == [ONE]


def test_octets_behind_the_packet_are_padding_of_the_link(tmp_path: Path) -> None:
    two = message(2)
    assert read(tmp_path, pcap(101, ipv4(tcp(ONE)) + two)) == [ONE]
    assert read(tmp_path, pcap(101, ipv6(tcp(ONE)) + two)) == [ONE]
    # With TCP segmentation offload the total length of a captured packet is 0.
    assert read(tmp_path, pcap(101, ipv4(tcp(ONE), total=0))) == [ONE]


@pytest.mark.parametrize(
    "packet",
    [
        ipv4(tcp(ONE), protocol=17),
        ipv6(tcp(ONE), protocol=17),
        ipv4(tcp(b"")),
        ipv4(bytes(19)),
        ipv6(bytes(19)),
        b"\x45" + bytes(18),
        b"\x60" + bytes(30),
        b"\x55" + bytes(60),
    ],
    ids=[
        "UDP",
        "UDP over IPv6",
        "no data",
        "short",
        "short over IPv6",
        "cut",
        "cut IPv6",
        "neither",
    ],
)
def test_other_packets_are_skipped(tmp_path: Path, packet: bytes) -> None:
    assert read(tmp_path, pcap(101, packet, ipv4(tcp(ONE)))) == [ONE]


def test_a_packet_of_only_a_header_of_each_size_has_its_octets(tmp_path: Path) -> None:
    """A segment of one octet is the start of a message that another segment continues."""
    pieces = [ipv4(tcp(ONE[:1], 1)), ipv6(tcp(ONE[:1], 1))]
    pieces += [ipv4(tcp(ONE[1:], 2)), ipv6(tcp(ONE[1:], 2))]
    assert read(tmp_path, pcap(101, *pieces)) == [ONE, ONE]


def test_segments_are_put_together_by_their_sequence(tmp_path: Path) -> None:
    whole = message(1, 60) + message(2, 40)
    cuts = [(0, 30), (30, 70), (70, 100)]
    segments = [ipv4(tcp(whole[first:last], 1000 + first)) for first, last in cuts]
    expected = [message(1, 60), message(2, 40)]
    assert read(tmp_path, pcap(101, *segments)) == expected
    assert read(tmp_path, pcap(101, *reversed(segments))) == expected
    # Sent again: cut shorter, longer, and with octets that are there already.
    again = [
        ipv4(tcp(whole[:10], 1000)),
        ipv4(tcp(whole[20:80], 1020)),
        ipv4(tcp(whole[:40], 1000)),
    ]
    assert read(tmp_path, pcap(101, *segments, *again)) == expected
    assert read(tmp_path, pcap(101, *again, *segments)) == expected
    inside = ipv4(tcp(whole[40:50], 1040))
    assert read(tmp_path, pcap(101, *segments, inside)) == expected


def test_connections_are_apart(tmp_path: Path) -> None:
    first, second = message(1, 40), message(2, 40)
    packets = [
        ipv4(tcp(first[:25], 1000)),
        ipv4(tcp(second[:25], 1000, port=40001)),
        ipv4(tcp(first[25:], 1025)),
        ipv4(tcp(second[25:], 1025, port=40001)),
    ]
    assert read(tmp_path, pcap(101, *packets)) == [first, second]


def test_messages_are_found_by_their_markers(tmp_path: Path) -> None:
    short = MARKER + struct.pack("!HB", 18, 4)
    stream = b"junk" + ONE + b"more" + short + message(2, 30)
    assert read(tmp_path, pcap(101, ipv4(tcp(stream)))) == [ONE, short, message(2, 30)]
    # What is cut at the end is there as far as it goes, from a whole header on.
    assert read(tmp_path, pcap(101, ipv4(tcp(message(1, 30)[:25])))) == [message(1, 30)[:25]]
    assert read(tmp_path, pcap(101, ipv4(tcp(ONE[:18])))) == []


def test_a_file_that_ends_within_a_packet_ends_there(tmp_path: Path) -> None:
    octets = pcap(101, ipv4(tcp(ONE)), ipv4(tcp(ONE, port=40001)))
    assert read(tmp_path, octets) == [ONE, ONE]
    for size in (1, 60, 74):
        assert read(tmp_path, octets[:-size])[0] == ONE
    assert read(tmp_path, octets[:24]) == []
    for size in (0, 23):
        with pytest.raises(NotACapture, match="neither a pcap nor a pcapng file"):
            read(tmp_path, octets[:size])


def test_simple_packets_are_of_the_first_interface_and_as_long_as_they_state(
    tmp_path: Path,
) -> None:
    packet = ipv4(tcp(ONE + b"\0"))
    simple = block(3, struct.pack("<I", len(packet)) + packet)
    assert read(tmp_path, SECTION + raw_interface() + raw_interface(1) + simple) == [ONE]
    assert read(tmp_path, SECTION + simple) == []
    assert read(tmp_path, SECTION + raw_interface() + block(3, b"")) == []


def test_enhanced_packets_are_of_their_interface(tmp_path: Path) -> None:
    def enhanced(interface: int, packet: bytes) -> bytes:
        head = struct.pack("<IIIII", interface, 0, 0, len(packet), len(packet))
        return block(6, head + packet)

    interfaces = SECTION + raw_interface() + raw_interface(0)
    packet = ipv4(tcp(ONE))
    assert read(tmp_path, interfaces + enhanced(0, packet)) == [ONE]
    assert read(tmp_path, interfaces + enhanced(1, bytes(4) + packet)) == [ONE]
    assert read(tmp_path, interfaces + enhanced(2, packet)) == []
    # A section begins with no interface.
    assert read(tmp_path, interfaces + SECTION + enhanced(0, packet)) == []
    assert read(tmp_path, interfaces + block(6, bytes(16)) + enhanced(0, packet)) == [ONE]


@pytest.mark.parametrize("size", [8, 13, 4000])
def test_a_block_of_an_impossible_size_ends_the_file(tmp_path: Path, size: int) -> None:
    packet = ipv4(tcp(ONE))
    head = struct.pack("<IIIII", 0, 0, 0, len(packet), len(packet))
    broken = struct.pack("<II", 5, size) + bytes(20)
    octets = SECTION + raw_interface() + block(6, head + packet) + broken
    assert read(tmp_path, octets) == [ONE]


def test_a_section_without_a_byte_order_is_no_capture(tmp_path: Path) -> None:
    with pytest.raises(NotACapture, match="no byte order"):
        read(tmp_path, block(0x0A0D0D0A, bytes(16)))
