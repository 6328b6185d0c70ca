"""The attribute fast path matches only fields that the slow path decodes without a fault."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.attribute import (
    AttributeFastPath,
    decode_attributes,
    encode_attribute,
    frame_attributes,
)
from speaker.attribute.fast_path import forwarding_values
from speaker.iana import AttributeType as A
from speaker.negotiated import Negotiated

PEER = 65001
EXCLUDED = 0x01020304
"""An excluded AS number."""
EBGP = Negotiated(local_asn=65000, peer_asn=PEER)
ANY_FIRST_AS = Negotiated(local_asn=65000, peer_asn=PEER, enforce_first_as=False)
IBGP = Negotiated(local_asn=65000, peer_asn=65000, ebgp=False)
REQUIRED = {A.ORIGIN, A.AS_PATH, A.NEXT_HOP}


def fast_path(session: Negotiated) -> AttributeFastPath:
    found = AttributeFastPath.of(session, {EXCLUDED})
    assert found is not None
    return found


FAST_PATHS = [(session, fast_path(session)) for session in (EBGP, IBGP, ANY_FIRST_AS)]
ASN = st.one_of(st.just(PEER), st.just(0), st.just(EXCLUDED), st.integers(0, 2**32 - 1))


def packed(asns: list[int]) -> bytes:
    return bytes((2, len(asns))) + struct.pack(f"!{len(asns)}I", *asns) if asns else b""


def of_size(size: int, most: int = 4) -> st.SearchStrategy[bytes]:
    return st.integers(1, most).flatmap(lambda n: st.binary(min_size=n * size, max_size=n * size))


VALUES: dict[A, tuple[int, st.SearchStrategy[bytes]]] = {
    A.ORIGIN: (0x40, st.integers(0, 3).map(lambda n: bytes((n,)))),
    A.AS_PATH: (
        0x40,
        st.tuples(st.sampled_from([[], [PEER]]), st.lists(ASN, max_size=6)).map(
            lambda parts: packed(parts[0] + parts[1])
        ),
    ),
    A.NEXT_HOP: (0x40, st.one_of(st.just(bytes((10, 0, 0, 1))), of_size(4, 1))),
    A.MULTI_EXIT_DISC: (0x80, of_size(4, 1)),
    A.LOCAL_PREF: (0x40, of_size(4, 1)),
    A.ATOMIC_AGGREGATE: (0x40, st.just(b"")),
    A.AGGREGATOR: (0xC0, of_size(8, 1)),
    A.COMMUNITIES: (0xC0, of_size(4)),
    A.EXTENDED_COMMUNITIES: (0xC0, of_size(8)),
    A.LARGE_COMMUNITIES: (0xC0, of_size(12)),
}


@st.composite
def fields(draw: st.DrawFn) -> bytes:
    """A field of common attributes, perhaps with one missing or one octet changed."""
    kinds = draw(st.sets(st.sampled_from(sorted(VALUES)))) | (
        REQUIRED if draw(st.integers(0, 9)) else set()
    )
    field = b"".join(
        encode_attribute(VALUES[kind][0], kind, draw(VALUES[kind][1])) for kind in sorted(kinds)
    )
    if field and not draw(st.integers(0, 2)):
        at = draw(st.integers(0, len(field) - 1))
        octet = draw(st.integers(0, 255))
        field = field[:at] + bytes((octet,)) + field[at + draw(st.integers(0, 1)) :]
    return field


def check(field: bytes) -> int:
    """Assert for every match that the slow path finds no fault; return the number of matches."""
    found = 0
    for session, one in FAST_PATHS:
        next_hop = one.match_next_hop(field)
        if next_hop is None:
            continue
        found += 1
        raws, overrun = frame_attributes(field)
        assert overrun is None
        block = decode_attributes(raws, session)
        # The caller of the fast path checks the next hop's address.
        assert not [fault for fault in block.faults if fault.attribute != A.NEXT_HOP]
        assert block.present >= REQUIRED - ({A.NEXT_HOP} if block.faults else set())
        assert block.faults or next_hop == block.attributes.next_hop
        value, packed = forwarding_values(field)
        assert value == next_hop
        # Octets are as received, values without repetition.
        communities = struct.unpack(f"!{len(packed) // 4}I", packed)
        assert tuple(dict.fromkeys(communities)) == block.attributes.communities
        assert block.attributes.originator_id is None
        assert block.attributes.otc is None
        assert not block.attributes.unknown
        for segment in block.attributes.as_path:
            assert segment.kind == 2
            assert 0 not in segment.asns
            assert EXCLUDED not in segment.asns
    return found


@given(fields())
def test_the_fast_path_matches_only_what_the_slow_path_accepts(field: bytes) -> None:
    check(field)


def plain(path: bytes = packed([PEER, 65002]), *more: bytes) -> bytes:
    return b"".join(
        (
            encode_attribute(0x40, A.ORIGIN, b"\0"),
            encode_attribute(0x40, A.AS_PATH, path),
            encode_attribute(0x40, A.NEXT_HOP, bytes((10, 0, 0, 1))),
            *more,
        )
    )


FULL = plain(
    packed([PEER, *range(1, 9)]),
    encode_attribute(0x80, A.MULTI_EXIT_DISC, bytes((0, 0, 0, 5))),
    encode_attribute(0x40, A.ATOMIC_AGGREGATE, b""),
    encode_attribute(0xC0, A.AGGREGATOR, bytes(range(1, 9))),
    encode_attribute(0xC0, A.COMMUNITIES, bytes(range(32))),
    encode_attribute(0xC0, A.EXTENDED_COMMUNITIES, bytes(range(16))),
    encode_attribute(0xC0, A.LARGE_COMMUNITIES, bytes(range(24))),
)


def test_every_change_of_one_octet_matches_only_if_the_slow_path_accepts_it() -> None:
    assert check(FULL) == len(FAST_PATHS)
    recognised = tried = 0
    for at, before in enumerate(FULL):
        # Every bit the other way, one more, one less, and the ends of the range.
        others = {before ^ 1 << bit for bit in range(8)} | {
            0,
            255,
            before + 1 & 255,
            before - 1 & 255,
        }
        tried += len(others)
        for octet in others:
            recognised += check(FULL[:at] + bytes((octet,)) + FULL[at + 1 :])
        check(FULL[:at])
        check(FULL[:at] + FULL[at + 1 :])
    # Most octets are values, which do not matter.
    assert recognised > tried / 2


@pytest.mark.parametrize(
    "field",
    [
        b"",
        plain(packed([65002])),
        plain(b""),
        plain(packed([PEER, 0])),
        plain(packed([PEER, EXCLUDED])),
        plain(packed([PEER]) + packed([PEER])),
        plain(b"\x01\x01" + PEER.to_bytes(4, "big")),
        plain(packed([PEER]), encode_attribute(0x40, A.LOCAL_PREF, bytes(4))),
        plain(packed([PEER]), encode_attribute(0x80, A.ORIGINATOR_ID, bytes(4))),
        plain(packed([PEER]), encode_attribute(0xC0, A.AGGREGATOR, bytes(8))),
        plain(packed([PEER]), encode_attribute(0xC0, 99, b"?")),
        plain(packed([PEER]), encode_attribute(0xE0, A.COMMUNITIES, bytes(4))),
        plain(packed([PEER]), encode_attribute(0xC0, A.COMMUNITIES, bytes(3))),
        plain(packed([PEER]), encode_attribute(0xC0, A.COMMUNITIES, b"")),
        plain()[7:] + plain()[:7],
        plain() + plain(),
    ],
)
def test_other_fields_from_an_external_peer_take_the_slow_path(field: bytes) -> None:
    assert FAST_PATHS[0][1].match_next_hop(field) is None


def test_from_an_internal_peer_an_empty_path_and_local_pref_match() -> None:
    field = plain(b"", encode_attribute(0x40, A.LOCAL_PREF, bytes((0, 0, 0, 200))))
    assert FAST_PATHS[1][1].match_next_hop(field) is not None
    assert check(field) == 1


@pytest.mark.parametrize(
    "session",
    [
        Negotiated(as4=False, peer_asn=PEER),
        Negotiated(peer_asn=0),
        Negotiated(peer_asn=PEER, confederation=True),
    ],
)
def test_sessions_without_a_fast_path(session: Negotiated) -> None:
    assert AttributeFastPath.of(session) is None
