"""Inbound processing: fast path and slow path leave the same routes and raise the same errors."""

from __future__ import annotations

import itertools
import struct
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.attribute import PathAttributes, encode_attribute
from speaker.errors import NotificationError
from speaker.iana import AttributeType as A
from speaker.iana import Role
from speaker.negotiated import Negotiated
from speaker.nlri import IPV4_UNICAST
from speaker.rib.adj_in import AdjRibIn
from speaker.rib.inbound import OWN_AS, InboundUpdates
from speaker.rib.inbound_context import ConnectionContext, SettingsContext, inbound_context
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Source
from speaker.rib.received_next_hops import MAX_NEXT_HOPS, ReceivedNextHops

OWN, PEER, OTHER_OWN = 65000, 65001, 65050
OWN_ADDRESS = bytes((10, 0, 0, 2))
SESSION = Negotiated(local_asn=OWN, peer_asn=PEER)


class Side:
    """One session's inbound processing with its Adj-RIB-In and a Loc-RIB."""

    def __init__(self, session: Negotiated = SESSION, *, allowas_in: int = 0) -> None:
        source = Source("p", address=bytes((10, 0, 0, 1)), router_id=1, ebgp=session.ebgp)
        self.loc = LocRib()
        self.adj_in = AdjRibIn(
            source, None, {IPV4_UNICAST: self.loc}, itertools.count(2), session.add_path_receive
        )
        context = inbound_context(
            session,
            SettingsContext(
                own_asns=frozenset({OWN, OTHER_OWN}),
                allowas_in_origin=False,
                allowas_in=allowas_in,
            ),
            ConnectionContext(own_addresses=frozenset({OWN_ADDRESS}), peer_is_local=False),
        )
        self.inbound = InboundUpdates(context, self.adj_in)

    def held(self) -> dict[bytes, tuple[PathAttributes, str | None]]:
        return {
            key: (path.attributes, path.rejected)
            for key, path, _ in chain.from_iterable(self.adj_in.routes(IPV4_UNICAST, 7))
        }

    def best(self) -> dict[bytes, PathAttributes]:
        return {nlri: paths[0].attributes for nlri, paths in self.loc.items()}


def body(
    *asns: int, hop: bytes = bytes((10, 0, 0, 1)), nlri: bytes = b"\x18\x0a\1\2", gone: bytes = b"",
    more: bytes = b"",
) -> bytes:  # fmt: skip
    path = bytes((2, len(asns))) + struct.pack(f"!{len(asns)}I", *asns)
    field = (
        encode_attribute(0x40, A.ORIGIN, b"\0")
        + encode_attribute(0x40, A.AS_PATH, path)
        + encode_attribute(0x40, A.NEXT_HOP, hop)
        + more
    )
    return b"".join(
        (struct.pack("!H", len(gone)), gone, struct.pack("!H", len(field)), field, nlri)
    )


GOOD = body(PEER, 65002)
HOPS = st.sampled_from(
    [
        bytes(hop)
        for hop in ((10, 0, 0, 1), OWN_ADDRESS, (127, 0, 0, 1), (0, 0, 0, 0), (224, 0, 0, 1))
    ]
)
BODIES = st.builds(
    lambda asns, hop, lengths, more: body(
        PEER, *asns, hop=hop, more=more,
        nlri=b"".join(bytes((n,)) + bytes((10, n, 255, 255))[: (n + 7) // 8] for n in lengths),
    ),
    st.lists(st.sampled_from([65002, OWN, 0]), max_size=3),
    st.one_of(st.just(bytes((10, 0, 0, 1))), HOPS),
    st.lists(st.sampled_from([0, 8, 15, 24, 32, 33]), max_size=4),
    st.sampled_from([b"", encode_attribute(0x80, A.MULTI_EXIT_DISC, bytes(4)), b"\xc0\x08\x04"]),
)  # fmt: skip
WITHDRAWALS = st.builds(
    lambda gone, end: struct.pack("!H", len(gone)) + gone + end,
    st.sampled_from([b"\x08\x0a", b"\x0f\x0a\x0f", b"\x18\x0a\x18\xff", b"\x21\x0a", b"\x18"]),
    st.sampled_from([b"\0\0", b"\0\1", b"\0", b""]),
)


Errors = list[tuple[int, int, int, bytes]]


@given(st.lists(st.one_of(BODIES, WITHDRAWALS), max_size=6))
def test_fast_path_and_slow_path_leave_the_same_routes(bodies: list[bytes]) -> None:
    fast, slow = Side(), Side()
    fast_errors: Errors = []
    slow_errors: Errors = []
    at = 0
    while at < len(bodies):
        taken = fast.inbound.fast_path.process_run(bodies, at, len(bodies))
        if not taken:
            process_slowly(fast, at, bodies, fast_errors)
        at += taken or 1
    for at in range(len(bodies)):
        process_slowly(slow, at, bodies, slow_errors)
    assert fast_errors == slow_errors
    assert fast.held() == slow.held()
    assert fast.best() == slow.best()


def process_slowly(side: Side, at: int, bodies: list[bytes], errors: Errors) -> None:
    try:
        side.inbound.process(bodies[at])
    except NotificationError as error:
        errors.append((at, error.code, error.subcode, error.data))


@pytest.mark.parametrize(
    ("path", "least"),
    [
        ([PEER, 65002], 0),
        ([PEER, OWN], 1),
        ([PEER, OWN, 65002, OWN], 2),
        ([PEER, OTHER_OWN, OWN], 1),
        ([PEER, *[OWN] * 11], 11),
    ],
)
def test_a_path_may_have_each_own_as_that_often(path: list[int], least: int) -> None:
    """FRR counts the AS of the router and that of the session each on its own."""
    rejected = {}
    for often in range(11):
        side = Side(allowas_in=often)
        side.inbound.process(body(*path))
        ((_, rejected[often]),) = side.held().values()
    expected = {often: None if often >= least else OWN_AS for often in range(11)}
    assert rejected == expected


def test_updates_with_equal_attributes_share_a_path() -> None:
    side = Side()
    assert (
        side.inbound.fast_path.process_run([GOOD, body(PEER, 65002, nlri=b"\x10\x0a\3")], 0, 2) == 2
    )
    first, second = (
        path for _, path, _ in chain.from_iterable(side.adj_in.routes(IPV4_UNICAST, 7))
    )
    assert first is second
    assert first.attributes.as_path == ((2, (PEER, 65002)),)


def test_a_run_ends_at_the_first_update_for_the_slow_path() -> None:
    side = Side()
    gone = body(PEER, gone=b"\x18\x0a\1\2")[:6] + b"\0\0"
    bodies = [GOOD, body(PEER, 65003, nlri=b"\x10\x0a\3"), gone, GOOD, body(PEER, OWN), GOOD]
    assert side.inbound.fast_path.process_run(bodies, 0, len(bodies)) == 2
    assert set(side.held()) == {b"\x18\x0a\1\2", b"\x10\x0a\3"}
    assert side.inbound.fast_path.process_run(bodies, 2, len(bodies)) == 1
    assert set(side.held()) == {b"\x10\x0a\3"}
    assert side.inbound.fast_path.process_run(bodies, 3, len(bodies)) == 1
    assert side.inbound.fast_path.process_run(bodies, 4, len(bodies)) == 0
    assert side.inbound.fast_path.process_run(bodies, 5, 5) == 0


@pytest.mark.parametrize(
    "one",
    [
        body(PEER, OWN),
        body(PEER, hop=OWN_ADDRESS),
        body(PEER, hop=bytes((127, 0, 0, 1))),
        body(PEER, gone=b"\x08\x0b"),
        b"\0\2\x18\x0a\0\0",
        b"\0\2\x08\x0a\0\1",
        b"\0\3\x08\x0a\0\0",
        body(PEER, nlri=b""),
        body(PEER, nlri=b"\x21\1\2\3\4\5"),
        body(65009),
        GOOD[:3] + b"\xff" + GOOD[4:],
        b"\0\0\0\0",
    ],
)
def test_other_updates_take_the_slow_path(one: bytes) -> None:
    side = Side()
    assert side.inbound.fast_path.process_run([one], 0, 1) == 0
    assert not side.held()


@pytest.mark.parametrize(
    "session",
    [
        Negotiated(local_asn=OWN, peer_asn=PEER, add_path_receive=frozenset({IPV4_UNICAST})),
        Negotiated(local_asn=OWN, peer_asn=PEER, local_role=Role.CUSTOMER),
        Negotiated(local_asn=OWN, peer_asn=PEER, as4=False),
    ],
)
def test_sessions_without_a_fast_path(session: Negotiated) -> None:
    assert Side(session).inbound.fast_path.process_run([GOOD], 0, 1) == 0


def test_the_number_of_cached_attribute_sets_is_bounded() -> None:
    side = Side()
    decoder = side.inbound._decoder
    decoder._cache_limit = lambda: 1 << 20
    decoder.resize_cache()
    most = 0
    for number in range(4000):
        assert side.inbound.fast_path.process_run([body(PEER, 1000 + number)], 0, 1) == 1
        most = max(most, len(side.inbound.cache.by_field))
    assert 100 < most < 2000
    assert side.adj_in.received(IPV4_UNICAST) == 1


def test_next_hops_are_remembered_on_both_paths_also_of_routes_that_are_not_used() -> None:
    side = Side()
    other = bytes((10, 0, 0, 2))
    assert side.inbound.fast_path.process_run([GOOD], 0, 1) == 1
    side.inbound.process(body(PEER, OWN, hop=other))
    side.inbound.process(body(PEER, 65002, gone=b"\x18\x0a\1\2", nlri=b""))
    assert side.inbound.next_hops.texts == ("10.0.0.1", "10.0.0.2")


def test_the_number_of_next_hops_is_bounded() -> None:
    hops = ReceivedNextHops()
    for number in range(2 * MAX_NEXT_HOPS):
        hops.add(number.to_bytes(4, "big"))
    hops.add(bytes(16) + bytes(16))
    assert len(hops.texts) == MAX_NEXT_HOPS


def test_of_two_ipv6_next_hops_the_global_address_is_used() -> None:
    hops = ReceivedNextHops()
    hops.add(bytes.fromhex("20010db8" + 11 * "00" + "01" + "fe80" + 13 * "00" + "01"))
    assert hops.texts == ("2001:db8::1",)
