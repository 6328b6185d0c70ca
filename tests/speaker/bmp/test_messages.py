"""BMP messages: round trips, the layout by hand, every rule of the RFCs, hostile octets."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from speaker.bmp import (
    BmpError,
    Initiation,
    Message,
    PeerDown,
    PeerHeader,
    PeerKind,
    PeerUp,
    RouteMonitoring,
    Statistic,
    StatisticKind,
    StatisticsReport,
    Termination,
    TerminationReason,
    Tlv,
    UnknownMessage,
    decode,
    encode,
    encode_peer_header,
    encode_route_monitoring,
)
from speaker.errors import EncodingError
from speaker.iana import IPV6_UNICAST, MessageType
from speaker.message import KEEPALIVE, frame_message
from tests.speaker.bmp.messages import messages, peers
from tests.support.bmp import Framer

OPEN = frame_message(MessageType.OPEN, b"\x04\xfd\xe8\x00\x5a\xc0\x00\x02\x01\x00")
UPDATE = frame_message(MessageType.UPDATE, bytes(4))
CEASE = frame_message(MessageType.NOTIFICATION, b"\x06\x02")
PEER = PeerHeader(address=bytes((192, 0, 2, 1)), asn=65001, router_id=0xC0000201)
LOC_RIB = PeerHeader(kind=PeerKind.LOC_RIB, address=b"", asn=65000, router_id=1)


def raw(kind: int, body: bytes) -> bytes:
    """Frame a body by hand."""
    return struct.pack(">BIB", 3, 6 + len(body), kind) + body


@given(messages())
def test_every_message_is_decoded_as_it_was_encoded(message: Message) -> None:
    assert decode(encode(message)) == message


@given(st.lists(messages(), max_size=5), st.data())
def test_a_stream_in_any_pieces_is_split_into_messages(
    sent: list[Message], data: st.DataObject
) -> None:
    stream = b"".join(map(encode, sent))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    framer = Framer()
    got: list[Message] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got += framer.feed(stream[start:end])
    assert got == sent


@given(peers(), st.lists(st.binary(max_size=60), max_size=4))
def test_many_updates_of_a_peer_are_encoded_as_single_ones(
    peer: PeerHeader, bodies: list[bytes]
) -> None:
    updates = [frame_message(MessageType.UPDATE, bytes(4) + body) for body in bodies]
    assert encode_route_monitoring(encode_peer_header(peer), updates) == b"".join(
        encode(RouteMonitoring(peer, update)) for update in updates
    )


# ------------------------------------------------------------------- hostile octets


@given(messages(), st.data())
@example(RouteMonitoring(PEER, UPDATE), None)
def test_a_truncated_message_is_rejected(message: Message, data: st.DataObject | None) -> None:
    octets = encode(message)
    lengths = range(len(octets)) if data is None else [data.draw(st.integers(0, len(octets) - 1))]
    for length in lengths:
        with pytest.raises(BmpError):
            decode(octets[:length])


@given(messages(), st.data())
def test_a_mutated_message_is_decoded_or_rejected(message: Message, data: st.DataObject) -> None:
    octets = bytearray(encode(message))
    for _ in range(data.draw(st.integers(1, 4))):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(BmpError):
        decode(bytes(octets))


@given(st.integers(0, 7), st.binary(max_size=120))
def test_any_body_is_decoded_or_rejected(kind: int, body: bytes) -> None:
    with contextlib.suppress(BmpError):
        decode(raw(kind, body))


def test_cve_2026_7737_a_count_of_statistics_beyond_the_body_is_rejected_at_once() -> None:
    with pytest.raises(BmpError, match="2 octets needed"):
        decode(raw(1, encode_peer_header(PEER) + b"\xff\xff\xff\xff"))


def test_cve_2026_7737_a_peer_up_whose_open_is_longer_than_the_message_is_rejected() -> None:
    claims = OPEN[:16] + (200).to_bytes(2, "big") + OPEN[18:]
    with pytest.raises(BmpError):
        decode(raw(3, encode_peer_header(PEER) + bytes(20) + OPEN + claims))


# ---------------------------------------------------------- RFC 7854 section 4.1, 4.2


def test_rfc7854_4_1_the_octets_of_the_common_header() -> None:
    assert encode(Termination(())) == bytes.fromhex("03 00000006 05")


@pytest.mark.parametrize("version", [1, 2, 4])
def test_rfc7854_4_1_other_versions_are_rejected(version: int) -> None:
    with pytest.raises(BmpError, match=f"version {version}"):
        decode(bytes((version,)) + encode(Termination(()))[1:])


@pytest.mark.parametrize("size", [0, 5, (1 << 20) + 1, 0xFFFFFFFF])
def test_rfc7854_4_1_an_invalid_size_ends_the_stream(size: int) -> None:
    with pytest.raises(BmpError, match=f"a message of {size} octets"):
        decode(struct.pack(">BIB", 3, size, 0))


def test_rfc7854_4_1_a_message_of_an_unknown_type_is_ignored() -> None:
    assert decode(raw(77, b"abc")) == UnknownMessage(77, b"abc")


def test_rfc7854_4_2_the_octets_of_the_per_peer_header() -> None:
    peer = PeerHeader(
        kind=PeerKind.LOCAL, distinguisher=0x0102030405060708, address=bytes((192, 0, 2, 1)),
        asn=65001, router_id=0xC0000202, post_policy=True, legacy_as_path=True,
        time=1_700_000_000_000_123,
    )  # fmt: skip
    assert encode_peer_header(peer) == bytes.fromhex(
        "02 60 0102030405060708 000000000000000000000000 c0000201 0000fde9 c0000202"
        " 6553f100 0000007b"
    )


def test_rfc7854_4_2_an_ipv6_peer_has_the_v_flag() -> None:
    address = bytes.fromhex("20010db8000000000000000000000001")
    octets = encode_peer_header(PeerHeader(address=address, asn=1, router_id=1))
    assert octets[1] == 0x80
    assert octets[10:26] == address


def test_rfc8671_4_adj_rib_out_has_the_o_flag() -> None:
    octets = encode_peer_header(PeerHeader(asn=1, router_id=1, adj_rib_out=True, post_policy=True))
    assert octets[1] == 0x50


def test_rfc9069_4_2_a_filtered_loc_rib_has_the_f_flag_and_no_other() -> None:
    peer = PeerHeader(
        kind=PeerKind.LOC_RIB, address=b"", asn=1, router_id=1, filtered=True, post_policy=True
    )
    assert encode_peer_header(peer)[:2] == b"\x03\x80"


@pytest.mark.parametrize(
    ("at", "octets", "rule"),
    [
        (0, b"\x04", "peer type 4"),
        (9, b"\x01", "a global peer with a distinguisher"),
        (10, b"\x01", "more than four octets"),
        (38, (1_000_000).to_bytes(4, "big"), "microseconds"),
    ],
)
def test_rfc7854_4_2_invalid_per_peer_headers_are_rejected(
    at: int, octets: bytes, rule: str
) -> None:
    header = encode_peer_header(PEER)
    bad = header[:at] + octets + header[at + len(octets) :]
    with pytest.raises(BmpError, match=rule):
        decode(raw(0, bad + UPDATE))


def test_rfc9069_4_2_a_loc_rib_has_no_address() -> None:
    header = encode_peer_header(LOC_RIB)
    with pytest.raises(BmpError, match="a Loc-RIB with an address"):
        decode(raw(0, header[:25] + b"\x01" + header[26:] + UPDATE))


# ------------------------------------------------------------ the messages, one by one


@pytest.mark.parametrize(("present", "missing"), [(1, "SYSTEM_NAME"), (2, "SYSTEM_DESCRIPTION")])
def test_rfc7854_4_3_an_initiation_needs_description_and_name(present: int, missing: str) -> None:
    with pytest.raises(BmpError, match=missing):
        decode(encode(Initiation((Tlv(present, b"x"),))))


def test_rfc7854_4_5_a_termination_has_a_reason() -> None:
    octets = encode(Termination.because(TerminationReason.OUT_OF_RESOURCES))
    assert octets == bytes.fromhex("03 0000000c 05 0001 0002 0002")
    message = decode(octets)
    assert isinstance(message, Termination)
    assert message.reason == TerminationReason.OUT_OF_RESOURCES
    with pytest.raises(BmpError, match="a reason of 1 octets"):
        decode(encode(Termination((Tlv(1, b"\0"),))))


@pytest.mark.parametrize(
    ("octets", "rule"),
    [
        (KEEPALIVE, "a BGP message of type 4 in place of UPDATE"),
        (UPDATE + b"\0", "1 octets behind the UPDATE"),
        (b"\0" + UPDATE[1:], "bad marker"),
        (UPDATE[:-1], "octets needed"),
    ],
)
def test_rfc7854_4_6_route_monitoring_is_one_update(octets: bytes, rule: str) -> None:
    with pytest.raises(BmpError, match=rule):
        decode(raw(0, encode_peer_header(PEER) + octets))


def test_rfc7854_4_8_counters_have_32_bits_and_gauges_64() -> None:
    report = StatisticsReport(
        PEER,
        (
            Statistic(StatisticKind.REJECTED_BY_POLICY, (1 << 32) + 5),
            Statistic(StatisticKind.ADJ_RIB_IN, 7),
            Statistic(StatisticKind.ADJ_RIB_IN_FAMILY, 9, IPV6_UNICAST),
        ),
    )
    assert encode(report)[48:] == bytes.fromhex(
        "00000003 0000 0004 00000005 0007 0008 0000000000000007 0009 000b 0002 01 0000000000000009"
    )


@pytest.mark.parametrize("kind", list(StatisticKind))
def test_rfc7854_4_8_a_statistic_of_another_width_is_rejected(kind: StatisticKind) -> None:
    body = (1).to_bytes(4, "big") + kind.to_bytes(2, "big") + b"\0\x05" + bytes(5)
    with pytest.raises(BmpError, match=f"statistic {kind} has 5 octets"):
        decode(raw(1, encode_peer_header(PEER) + body))


def test_rfc7854_4_8_an_unknown_statistic_is_ignored() -> None:
    body = (1).to_bytes(4, "big") + b"\x03\xe7\0\x05" + bytes(5)
    assert decode(raw(1, encode_peer_header(PEER) + body)) == StatisticsReport(PEER, ())


def test_rfc7854_4_8_a_statistic_of_a_family_needs_one() -> None:
    with pytest.raises(EncodingError):
        encode(StatisticsReport(PEER, (Statistic(StatisticKind.LOC_RIB_FAMILY, 1),)))


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"\x00", "reason 0 is reserved"),
        (b"\xff", "reason 255 is reserved"),
        (b"\x01", "octets needed"),
        (b"\x01" + UPDATE, "in place of NOTIFICATION"),
        (b"\x03" + CEASE + b"\0", "behind the NOTIFICATION"),
        (b"\x02\0", "octets needed"),
        (b"\x02\0\x02\0", "1 octets behind reason 2"),
        (b"\x04\0", "1 octets behind reason 4"),
        (b"\x05\0", "1 octets behind reason 5"),
    ],
)
def test_rfc7854_4_9_a_reason_has_its_data_and_nothing_more(body: bytes, rule: str) -> None:
    with pytest.raises(BmpError, match=rule):
        decode(raw(2, encode_peer_header(PEER) + body))


def test_rfc7854_4_10_the_octets_of_peer_up() -> None:
    up = PeerUp(
        peer=PEER, local_address=bytes((192, 0, 2, 9)), local_port=179, remote_port=40000,
        sent_open=OPEN, received_open=OPEN, information=(Tlv(0, b"hi"),),
    )  # fmt: skip
    assert encode(up)[48:] == (
        bytes(12) + bytes.fromhex("c0000209 00b3 9c40") + OPEN + OPEN + b"\0\0\0\x02hi"
    )


def test_rfc7854_4_10_both_addresses_are_of_one_family() -> None:
    body = encode_peer_header(PEER) + b"\x20" + bytes(19) + OPEN + OPEN
    with pytest.raises(BmpError, match="an IPv6 local address towards an IPv4 peer"):
        decode(raw(3, body))


@pytest.mark.parametrize("name", [b"", b"x" * 256])
def test_rfc9069_4_4_a_table_name_has_1_to_255_octets(name: bytes) -> None:
    up = PeerUp(peer=LOC_RIB, sent_open=OPEN, received_open=OPEN, information=(Tlv(3, name),))
    with pytest.raises(BmpError, match=f"a table name of {len(name)} octets"):
        decode(encode(up))
    with pytest.raises(BmpError, match=f"a table name of {len(name)} octets"):
        decode(encode(PeerDown(peer=LOC_RIB, reason=6, information=(Tlv(3, name),))))


def test_rfc9069_4_4_a_loc_rib_has_no_port() -> None:
    body = encode_peer_header(LOC_RIB) + bytes(16) + b"\0\xb3\0\0" + OPEN + OPEN
    with pytest.raises(BmpError, match="a Loc-RIB with an address or a port"):
        decode(raw(3, body))
