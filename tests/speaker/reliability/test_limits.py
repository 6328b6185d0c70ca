"""What a peer can make this speaker spend: time for a message, memory for all of them (H36 to H45).

Time is compared with a bound that is tens of times what it takes, and far below what it took when
the work grew with the square of the message.
"""

from __future__ import annotations

import time
import tracemalloc

import pytest

from speaker.api import (
    MaximumPrefixes,
    Policy,
    PrefixLimit,
    RouteAttributes,
    SessionError,
    Set,
    Term,
)
from speaker.attribute import ErrorHandling, encode_attribute
from speaker.capability import AddPath, ExtendedMessage, RouteRefreshCapability
from speaker.engine.inputs import QueueChanged, UpdateRoutes
from speaker.message import KEEPALIVE, RouteRefresh, UpdateDecoder
from speaker.negotiated import Negotiated
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, prefix_to_wire
from speaker.rib.adj_in.path_ids import MAX_PATHS
from tests.speaker.hostile import RICH, Arena
from tests.speaker.raw import ATTRIBUTES, FAMILIES, INSTANCE, NLRI, Raw, open_message, update

ORIGIN, AS_PATH, NEXT_HOP = ATTRIBUTES[:4], ATTRIBUTES[4:13], ATTRIBUTES[13:]
EXTENDED = Negotiated(extended_message=True)
LONG = 1.0
"""CPU seconds that nothing here may take, whatever else the machine does."""


def numbers(count: int, width: int) -> bytes:
    return b"".join(number.to_bytes(width, "big") for number in range(1, count + 1))


def segments(size: int, total: int) -> bytes:
    """Return an AS_PATH of so many AS numbers in segments of a size."""
    return b"".join(
        bytes((2, size)) + (65002).to_bytes(4, "big") * size for _ in range(total // size)
    )


@pytest.mark.parametrize(
    ("kind", "value", "outcome"),
    [
        (2, segments(250, 750), ErrorHandling.NONE),
        (2, segments(1, 750), ErrorHandling.NONE),
        (2, segments(1, 751), ErrorHandling.TREAT_AS_WITHDRAW),
        (2, segments(3, 2049), ErrorHandling.TREAT_AS_WITHDRAW),
        (2, segments(250, 16_000), ErrorHandling.TREAT_AS_WITHDRAW),
        (2, segments(1, 10_800), ErrorHandling.TREAT_AS_WITHDRAW),
        (8, numbers(1_000, 4), ErrorHandling.NONE),
        (8, numbers(16_000, 4), ErrorHandling.NONE),
        (32, numbers(5_300, 12), ErrorHandling.NONE),
        (16, numbers(8_000, 8), ErrorHandling.NONE),
        (23, b"\0\1\0\0" * 16_000, ErrorHandling.NONE),
    ],
    ids=lambda value: str(len(value)) if isinstance(value, bytes) else str(value),
)
def test_h36_a_very_long_attribute_is_decoded_or_rejected_in_bounded_time(
    kind: int, value: bytes, outcome: ErrorHandling
) -> None:
    flags = 0x40 if kind == 2 else 0xC0
    octets = ORIGIN + NEXT_HOP + encode_attribute(flags, kind, value)
    if kind != 2:
        octets += AS_PATH
    started = time.thread_time()
    found = UpdateDecoder(EXTENDED).decode(update(octets, NLRI)[19:])
    assert time.thread_time() - started < LONG
    assert found.outcome is outcome


def test_h36_an_as_path_beyond_the_limit_is_reported() -> None:
    octets = ORIGIN + NEXT_HOP + encode_attribute(0x40, 2, segments(1, 751))
    (fault,) = UpdateDecoder(EXTENDED).decode(update(octets, NLRI)[19:]).faults
    assert fault.rule == "more than 750 AS numbers"


def test_h36_thousands_of_duplicates_are_one_fault_for_each_type() -> None:
    many = encode_attribute(0x80, 4, bytes(4)) * 4_000 + encode_attribute(0xC0, 99, b"") * 8_000
    started = time.thread_time()
    found = UpdateDecoder(EXTENDED).decode(update(ATTRIBUTES + many, NLRI)[19:])
    assert time.thread_time() - started < LONG
    assert [(fault.attribute, fault.rule) for fault in found.faults] == [
        (4, "it appears twice"),
        (99, "it appears twice"),
    ]
    assert found.outcome is ErrorHandling.ATTRIBUTE_DISCARD


def _flood(decoder: UpdateDecoder, kind: str, number: int) -> None:
    if kind == "attribute sets":
        octets = ATTRIBUTES + encode_attribute(0xC0, 8, numbers(250, 4) + number.to_bytes(4, "big"))
        decoder.decode(update(octets, NLRI)[19:])
    else:
        hop = b"\x20\x01" + number.to_bytes(14, "big")
        reach = encode_attribute(0x80, 14, b"\0\2\1\x10" + hop + b"\0\x10\xfd\0")
        decoder.decode(update(ORIGIN + AS_PATH + reach)[19:])


@pytest.mark.parametrize(
    ("kind", "count"), [("attribute sets", 200), ("next hops of one attribute set", 2_000)]
)
def test_h36_the_attribute_cache_is_bounded_in_octets(kind: str, count: int) -> None:
    forgotten: list[int] = []
    decoder = UpdateDecoder(EXTENDED, lambda: forgotten.append(1), cache=lambda: 200_000)
    tracemalloc.start()
    try:
        for number in range(count):
            _flood(decoder, kind, number)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
    assert forgotten


def ids(count: int, first: int = 0) -> bytes:
    """Return one prefix under many path identifiers."""
    return b"".join((first + number).to_bytes(4, "big") + NLRI for number in range(count))


def add_path() -> Raw:
    offered = (*FAMILIES, ExtendedMessage(), AddPath(((IPV4_UNICAST, 3),)))
    return Raw(add_path="both").to_established(open_message(capabilities=offered))


def test_h40_the_paths_of_a_prefix_from_one_peer_are_limited() -> None:
    raw = add_path()
    started = time.thread_time()
    for first in range(0, 8_000, 4_000):
        raw.send(update(ATTRIBUTES, ids(4_000, first)))
    assert time.thread_time() - started < LONG
    assert raw.status.families[0].received == MAX_PATHS
    reports = [event.text for event in raw.events if isinstance(event, SessionError)]
    assert reports[0].startswith("UPDATE with more than 64 paths of a prefix")
    assert len(reports) == 2
    # What is taken can be changed and withdrawn as ever, and makes room.
    raw.send(update(ATTRIBUTES + encode_attribute(0x80, 4, bytes(4)), ids(MAX_PATHS)))
    assert raw.status.families[0].received == MAX_PATHS
    raw.send(update(b"", b"", ids(10) + ids(10)))
    raw.send(update(ATTRIBUTES, ids(4, 500) + ids(4, 500)))
    assert raw.status.families[0].received == MAX_PATHS - 6
    assert len(reports) == 2
    raw.send(update(b"", b"", ids(8_000)))
    assert raw.status.families[0].received == 0
    assert not list(raw.engine.views.routes_available(INSTANCE, IPV4_UNICAST))


def test_h40_the_limit_of_paths_applies_to_each_session() -> None:
    raw = add_path()
    raw.send(update(ATTRIBUTES, ids(MAX_PATHS)))
    raw.drop()
    raw.wait(60)
    raw.to_established(open_message(capabilities=(*FAMILIES, AddPath(((IPV4_UNICAST, 3),)))))
    raw.send(update(ATTRIBUTES, ids(MAX_PATHS, 1_000)))
    assert raw.status.families[0].received == MAX_PATHS


def test_h43_the_prefix_limit_is_reached_exactly_and_then_exceeded() -> None:
    limit = MaximumPrefixes(100, restart_after=30)
    raw = Raw(maximum_prefixes=(limit,)).to_established()
    wire = [prefix_to_wire(f"10.{number}.0.0/16")[1] for number in range(101)]
    raw.send(update(ATTRIBUTES, b"".join(wire[:74])))
    assert not [event for event in raw.events if isinstance(event, PrefixLimit)]
    raw.send(update(ATTRIBUTES, b"".join(wire[:100])))
    assert raw.status.established
    raw.send(update(ATTRIBUTES, wire[100]))
    assert raw.notification == (6, 1, b"\0\1\1" + (100).to_bytes(4, "big"))
    assert [event.ended for event in raw.events if isinstance(event, PrefixLimit)] == [False, True]
    assert not list(raw.engine.views.routes_received(INSTANCE, None, IPV4_UNICAST))
    raw.wait(29)
    assert raw.state == "Idle"
    raw.wait(2)
    assert raw.state == "Active"


def test_h43_updates_beyond_the_prefix_limit_are_not_processed() -> None:
    raw = Raw(maximum_prefixes=(MaximumPrefixes(1_000),)).to_established()
    flood = b"".join(
        update(
            ATTRIBUTES,
            b"".join(b"\x20\x0b" + (n * 800 + k).to_bytes(3, "big") for k in range(800)),
        )
        for n in range(200)
    )
    raw.send(flood)
    assert raw.is_closed
    assert raw.notification is not None
    assert raw.notification[:2] == (6, 1)
    assert "1600 prefixes of ipv4-unicast, the limit is 1000" in raw.status.reason
    raw.wait(3600)
    assert raw.state == "Idle"


def test_h44_a_flapping_prefix_leaves_no_state() -> None:
    raw = Raw(export="all").to_established()
    flap = update(ATTRIBUTES, NLRI) + update(b"", b"", NLRI)
    raw.send(flap)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(100):
            raw.send(flap * 20)
        raw.send(KEEPALIVE)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert raw.status.established
    assert raw.status.families[0].received == 0
    assert after - before < 50_000


def _table(raw: Raw, count: int) -> None:
    changes = {
        prefix_to_wire(f"10.{number >> 8}.{number & 255}.0/24")[1]: RouteAttributes()
        for number in range(count)
    }
    raw.give(UpdateRoutes(INSTANCE, "s", {IPV4_UNICAST: changes}))


def refreshing() -> Raw:
    raw = Raw(route_set="s")
    _table(raw, 500)
    return raw.to_established(open_message(capabilities=(*FAMILIES, RouteRefreshCapability())))


def test_h45_any_number_of_route_refreshes_is_answered_once() -> None:
    raw = refreshing()
    raw.sent = b""
    raw.send(RouteRefresh(IPV4_UNICAST).encode() * 1_000)
    once = len(raw.sent)
    assert 500 * 4 < once < 500 * 4 + 200
    raw.send(RouteRefresh(IPV4_UNICAST).encode())
    assert len(raw.sent) == 2 * once


def test_h45_a_route_refresh_of_a_peer_that_does_not_read_is_answered_later() -> None:
    raw = refreshing()
    raw.give(QueueChanged(raw.connection, 5_000))
    raw.sent = b""
    raw.send(RouteRefresh(IPV4_UNICAST).encode())
    assert raw.sent == b""
    assert not raw.engine.updates_pending
    raw.give(QueueChanged(raw.connection, 0))
    assert len(raw.sent) > 500 * 4


def test_h45_a_route_refresh_of_an_unnegotiated_family_is_ignored() -> None:
    raw = refreshing()
    raw.sent = b""
    for family in ((1, 128), (16388, 71), (0, 0)):
        raw.send(RouteRefresh(type(IPV6_UNICAST)(*family)).encode())
    assert raw.status.established
    assert raw.sent == b""


def test_h36_attributes_that_a_policy_makes_too_long_withdraw_the_prefix() -> None:
    """There is room for 16,383 communities in an attribute; the peer sends almost as many."""
    more = tuple(f"65001:{number}" for number in range(100))
    policy = Policy(terms=(Term(set=Set(add_communities=more)),))
    arena = Arena("rich", import_=policy).reach("Established", RICH)
    many = encode_attribute(0xC0, 8, numbers(16_340, 4))
    nlri = b"\0\0\0\1\x18\x0a\x01\x00"
    arena.send(update(ORIGIN + AS_PATH + NEXT_HOP + many, nlri))
    assert arena.status().established
    arena.check()
    # The others go on hearing of other routes.
    before = len(arena.messages(arena.quiet))
    arena.send(update(ATTRIBUTES, b"\0\0\0\1\x18\x0a\x02\x00"))
    assert len(arena.messages(arena.quiet)) > before
    arena.check()
