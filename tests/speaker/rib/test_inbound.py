"""UPDATEs on the short way and on the long way end in the same routes."""

from __future__ import annotations

import itertools
import struct
from typing import Any

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
from speaker.rib.inbound import InboundUpdates
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Source

OWN, PEER = 65000, 65001
OWN_ADDRESS = bytes((10, 0, 0, 2))
SESSION = Negotiated(local_asn=OWN, peer_asn=PEER)


class Side:
    """One session's intake with everything behind it."""

    def __init__(self, session: Negotiated = SESSION) -> None:
        source = Source("p", address=bytes((10, 0, 0, 1)), router_id=1, ebgp=session.ebgp)
        self.loc = LocRib()
        self.adj_in = AdjRibIn(
            source, None, {IPV4_UNICAST: self.loc}, itertools.count(2), session.add_path_receive
        )
        self.intake = InboundUpdates(
            session, self.adj_in, frozenset({OWN}), frozenset({OWN_ADDRESS})
        )

    def held(self) -> dict[bytes, tuple[PathAttributes, str | None]]:
        return {
            key: (path.attributes, path.rejected)
            for key, path, _ in self.adj_in.routes(IPV4_UNICAST)
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


@given(st.lists(st.one_of(BODIES, WITHDRAWALS), max_size=6))
def test_both_ways_end_in_the_same_routes(bodies: list[bytes]) -> None:
    short, long = Side(), Side()
    for one in bodies:
        errors: list[Any] = []
        for side, takes in ((short, side_short), (long, side_long)):
            try:
                takes(side, one)
                errors.append(None)
            except NotificationError as error:
                errors.append((error.code, error.subcode, error.data))
        assert errors[0] == errors[1]
    assert short.held() == long.held()
    assert short.best() == long.best()


def side_short(side: Side, one: bytes) -> None:
    if not side.intake.process_run([one], 0, 1):
        side.intake.process(one)


def side_long(side: Side, one: bytes) -> None:
    side.intake.process(one)


def test_a_usual_update_goes_the_short_way_and_shares_its_path() -> None:
    side = Side()
    assert side.intake.process_run([GOOD, body(PEER, 65002, nlri=b"\x10\x0a\3")], 0, 2) == 2
    first, second = (path for _, path, _ in side.adj_in.routes(IPV4_UNICAST))
    assert first is second
    assert first.attributes.as_path == ((2, (PEER, 65002)),)


def test_usual_updates_in_a_row_count_until_one_has_to_be_looked_at() -> None:
    side = Side()
    gone = body(PEER, gone=b"\x18\x0a\1\2")[:6] + b"\0\0"
    bodies = [GOOD, body(PEER, 65003, nlri=b"\x10\x0a\3"), gone, GOOD, body(PEER, OWN), GOOD]
    assert side.intake.process_run(bodies, 0, len(bodies)) == 2
    assert set(side.held()) == {b"\x18\x0a\1\2", b"\x10\x0a\3"}
    assert side.intake.process_run(bodies, 2, len(bodies)) == 1
    assert set(side.held()) == {b"\x10\x0a\3"}
    assert side.intake.process_run(bodies, 3, len(bodies)) == 1
    assert side.intake.process_run(bodies, 4, len(bodies)) == 0
    assert side.intake.process_run(bodies, 5, 5) == 0


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
def test_what_has_to_be_told_of_goes_the_long_way(one: bytes) -> None:
    side = Side()
    assert side.intake.process_run([one], 0, 1) == 0
    assert not side.held()


@pytest.mark.parametrize(
    "session",
    [
        Negotiated(local_asn=OWN, peer_asn=PEER, add_path_receive=frozenset({IPV4_UNICAST})),
        Negotiated(local_asn=OWN, peer_asn=PEER, local_role=Role.CUSTOMER),
        Negotiated(local_asn=OWN, peer_asn=PEER, as4=False),
    ],
)
def test_some_sessions_have_the_long_way_only(session: Negotiated) -> None:
    assert Side(session).intake.process_run([GOOD], 0, 1) == 0


def test_attributes_without_number_do_not_fill_the_memory() -> None:
    side = Side()
    decoder = side.intake._decoder
    decoder._cache_size = decoder._cache_free = 1 << 20
    most = 0
    for number in range(4000):
        assert side.intake.process_run([body(PEER, 1000 + number)], 0, 1) == 1
        most = max(most, len(side.intake._usual))
    assert 100 < most < 2000
    assert side.adj_in.received(IPV4_UNICAST) == 1
