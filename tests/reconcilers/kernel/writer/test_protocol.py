"""The messages between agent and writer: encoded, cut anywhere, decoded, of two versions."""

from __future__ import annotations

import json
import struct

import pytest

from reconcilers.kernel.writer import protocol_messages
from reconcilers.kernel.writer.protocol import CODEC, Message, prefixes
from reconcilers.kernel.writer.protocol_messages import (
    BLACKHOLE,
    IPV4,
    IPV6,
    Batch,
    Cause,
    Change,
    Changed,
    Confirmed,
    Failure,
    Freed,
    Goodbye,
    Health,
    Hello,
    KernelRoute,
    Listing,
    Move,
    NextHop,
    Read,
    Reason,
    Resolution,
    Resolved,
    Routes,
    RouteTable,
    SetRoutes,
    Settings,
    Track,
    TrackedAddress,
)
from reconcilers.process.codec import ProtocolError, VersionError

MAIN = RouteTable(254, IPV4, 20)
RED = RouteTable(1001, IPV6, 20)
NET = b"\x18\x0a\x01\x02"
OTHER = b"\x10\x0a\x07"
HOPS = (NextHop(b"\x0a\x00\x00\x01", 3, weight=2), NextHop(bytes(16), 4, onlink=True))
ADDRESS = TrackedAddress(254, b"\xc0\x00\x02\x01")

MESSAGES: list[Message] = [
    Hello("waggle-agent 1"),
    Settings(protocol=187, keep=False),
    Batch(7, (Move(HOPS, HOPS[:1]), Move(BLACKHOLE, None)), (Routes(RED, NET),)),
    Batch(8, routes=(SetRoutes(HOPS, (Routes(MAIN, NET + OTHER), Routes(RED, NET))),)),
    Track((ADDRESS,)),
    Read(3, MAIN),
    Read(4),
    Goodbye(),
    Listing(0, (SetRoutes(BLACKHOLE, (Routes(MAIN, NET),)),), last=True),
    Confirmed(7, 12, (Failure(Reason.OCCUPIED, 17, "File exists", (Routes(MAIN, NET),)),), 0.25),
    Changed(Cause.EVENT, (Change(Reason.MISSING, (Routes(MAIN, NET),)),)),
    Freed((Routes(MAIN, NET),)),
    Resolved((Resolution(ADDRESS, KernelRoute(MAIN, b"\0", 3, HOPS)), Resolution(ADDRESS, None))),
    Health("no CAP_NET_ADMIN"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_a_message_comes_out_as_it_went_in(message: Message) -> None:
    (found,) = CODEC.decoder().feed(CODEC.encode(message))
    assert found == message
    assert type(found) is type(message)


def test_a_stream_may_be_cut_anywhere() -> None:
    stream = b"".join(CODEC.encode(message) for message in MESSAGES)
    decoder = CODEC.decoder()
    found = [message for octet in stream for message in decoder.feed(bytes((octet,)))]
    assert found == MESSAGES


def test_every_kind_of_message_is_tested() -> None:
    assert {type(message) for message in MESSAGES} == {
        *protocol_messages.ToWriter.__args__,
        *protocol_messages.FromWriter.__args__,
    }


def test_a_newer_version_may_have_more_fields_and_more_kinds() -> None:
    assert CODEC.decode(b'{"kind": "Teleport", "to": 3}', b"") is None
    assert CODEC.decode(b'{"kind": "Read", "number": 3, "colour": [1]}', b"") == Read(3)


def test_an_older_version_may_have_fewer_fields() -> None:
    assert CODEC.decode(b'{"kind": "Settings"}', b"") == Settings()


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"{}",
        b'{"kind": 3, "number": 3}',
        b'{"kind": []}',
        b'{"kind": "Read"}',
        b'{"kind": "Read", "number": "3"}',
        b'{"kind": "Read", "number": true}',
        b'{"kind": "Read", "number": 1, "table": [254, 2, 20]}',
        b'{"kind": "Batch", "number": 1, "removed": 7}',
        b'{"kind": "Freed", "routes": [{"table": {}, "prefixes": [0, 0]}]}',
        b'{"kind": "Confirmed", "number": 1, "written": 1, "failures": [], "seconds": [0, 1]}',
        b'{"kind": "Changed", "cause": "boredom", "changes": []}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_what_is_no_message_is_an_error_of_the_protocol(header: bytes) -> None:
    if header == b'{"kind": 3, "number": 3}':
        assert CODEC.decode(header, b"") is None  # a kind that is not known
        return
    with pytest.raises(ProtocolError):
        CODEC.decode(header, b"")


@pytest.mark.parametrize("lengths", [(1 << 31, 2), (10, 7)])
def test_lengths_that_cannot_be_are_an_error(lengths: tuple[int, int]) -> None:
    with pytest.raises(ProtocolError):
        list(CODEC.decoder().feed(struct.pack("!II", *lengths) + bytes(20)))


def test_the_latest_version_of_both_is_spoken() -> None:
    assert CODEC.common_version(Hello("other", (1, 9))) == 1
    with pytest.raises(VersionError, match=r"other speaks versions 2-3 of the messages"):
        CODEC.common_version(Hello("other", (2, 3)))


def test_prefixes_are_cut_by_their_lengths() -> None:
    assert prefixes(NET + b"\0" + OTHER) == [NET, b"\0", OTHER]
    for octets in (NET[:3], b"\x81" + bytes(17)):
        with pytest.raises(ProtocolError):
            prefixes(octets)


def test_prefixes_are_not_part_of_the_json() -> None:
    frame = CODEC.encode(Freed((Routes(MAIN, NET * 1000),)))
    _, header = struct.unpack_from("!II", frame)
    assert len(frame) == 8 + header + 4000
    assert json.loads(frame[8 : 8 + header])["routes"][0]["prefixes"] == [0, 4000]
