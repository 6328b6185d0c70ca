"""Path attributes: RFC 7606's table row by row, and that nothing else comes out of any octets."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from speaker.attribute import (
    ErrorHandling,
    decode_attributes,
    encode_attribute,
    encode_attributes,
    frame_attributes,
)
from speaker.attribute.attribute_rules import ATTRIBUTE_RULES
from speaker.errors import BgpError, NotificationError
from speaker.negotiated import Negotiated

EBGP = Negotiated(peer_asn=65001)
IBGP = Negotiated(ebgp=False, peer_asn=65001, local_asn=65001)


def outcome(octets: bytes, session: Negotiated = EBGP) -> tuple[ErrorHandling, int]:
    """Judge one attribute: the strongest outcome, and the attribute."""
    raws, overrun = frame_attributes(octets)
    faults = decode_attributes(raws, session).faults + ((overrun,) if overrun else ())
    worst = max(faults, key=lambda fault: fault.outcome, default=None)
    return (worst.outcome, worst.attribute) if worst else (ErrorHandling.NONE, 0)


NONE, WITHDRAW, DISCARD = (
    ErrorHandling.NONE,
    ErrorHandling.TREAT_AS_WITHDRAW,
    ErrorHandling.ATTRIBUTE_DISCARD,
)
OLD = Negotiated(peer_asn=65001, as4=False)
PEER = b"\0\0\xfd\xe9"
"""AS 65001, the peer's."""


class Row(NamedTuple):
    """An attribute by its RFC and section, and what it costs."""

    section: str
    flags: int
    kind: int
    value: bytes
    outcome: ErrorHandling
    session: Negotiated = EBGP


ROWS = [
    # ORIGIN
    Row("7606 7.1", 0x40, 1, b"\2", NONE),
    Row("7606 7.1", 0x40, 1, b"", WITHDRAW),
    Row("7606 7.1", 0x40, 1, b"\0\0", WITHDRAW),
    Row("7606 7.1", 0x40, 1, b"\3", WITHDRAW),
    # AS_PATH
    Row("7606 7.2", 0x40, 2, b"\2\1" + PEER, NONE),
    Row("7606 7.2", 0x40, 2, b"\5\1" + PEER, WITHDRAW),
    Row("7606 7.2", 0x40, 2, b"\2\2" + PEER, WITHDRAW),
    Row("7606 7.2", 0x40, 2, b"\2\1" + PEER + b"\2", WITHDRAW),
    Row("7606 7.2", 0x40, 2, b"\2\1" + PEER + b"\2\0", WITHDRAW),
    Row("7607 2", 0x40, 2, b"\2\2" + PEER + bytes(4), WITHDRAW),
    Row("4271 6.3", 0x40, 2, b"\2\1\0\0\0\1", WITHDRAW),
    Row("5065 5", 0x40, 2, b"\3\1" + PEER, WITHDRAW),
    Row("5065 5", 0x40, 2, b"\2\1" + PEER + b"\4\1" + PEER, WITHDRAW),
    # NEXT_HOP
    Row("7606 7.3", 0x40, 3, b"\xc0\0\2\1", NONE),
    Row("7606 7.3", 0x40, 3, bytes(3), WITHDRAW),
    Row("7606 7.3", 0x40, 3, bytes(16), WITHDRAW),
    Row("4271 6.3", 0x40, 3, bytes(4), WITHDRAW),
    Row("4271 6.3", 0x40, 3, b"\xe0\0\0\1", WITHDRAW),
    # MULTI_EXIT_DISC
    Row("7606 7.4", 0x80, 4, bytes(4), NONE),
    Row("7606 7.4", 0x80, 4, bytes(3), WITHDRAW),
    # LOCAL_PREF
    Row("7606 7.5", 0x40, 5, bytes(4), DISCARD),
    Row("7606 7.5", 0x40, 5, bytes(3), DISCARD),
    Row("7606 7.5", 0x40, 5, bytes(4), NONE, IBGP),
    Row("7606 7.5", 0x40, 5, bytes(3), WITHDRAW, IBGP),
    # ATOMIC_AGGREGATE, AGGREGATOR
    Row("7606 7.6", 0x40, 6, b"", NONE),
    Row("7606 7.6", 0x40, 6, b"?", DISCARD),
    Row("7606 7.7", 0xC0, 7, PEER + bytes(4), NONE),
    Row("7606 7.7", 0xC0, 7, PEER + bytes(2), DISCARD),
    Row("7606 7.7", 0xC0, 7, PEER[2:] + bytes(4), NONE, OLD),
    Row("7606 7.7", 0xC0, 7, PEER + bytes(4), DISCARD, OLD),
    Row("7607 2", 0xC0, 7, bytes(8), DISCARD),
    # Communities
    Row("7606 7.8", 0xC0, 8, bytes(8), NONE),
    Row("7606 7.8", 0xC0, 8, b"", WITHDRAW),
    Row("7606 7.8", 0xC0, 8, bytes(6), WITHDRAW),
    Row("7606 7.14", 0xC0, 16, bytes(8), NONE),
    Row("7606 7.14", 0xC0, 16, b"", WITHDRAW),
    Row("7606 7.14", 0xC0, 16, bytes(12), WITHDRAW),
    Row("7606 7.15", 0xC0, 25, bytes(20), NONE),
    Row("7606 7.15", 0xC0, 25, bytes(8), WITHDRAW),
    Row("8092 5", 0xC0, 32, bytes(12), NONE),
    Row("8092 5", 0xC0, 32, b"", WITHDRAW),
    Row("8092 5", 0xC0, 32, bytes(8), WITHDRAW),
    # ORIGINATOR_ID, CLUSTER_LIST
    Row("7606 7.9", 0x80, 9, bytes(4), DISCARD),
    Row("7606 7.9", 0x80, 9, bytes(4), NONE, IBGP),
    Row("7606 7.9", 0x80, 9, bytes(5), WITHDRAW, IBGP),
    Row("7606 7.10", 0x80, 10, bytes(4), DISCARD),
    Row("7606 7.10", 0x80, 10, bytes(8), NONE, IBGP),
    Row("7606 7.10", 0x80, 10, b"", WITHDRAW, IBGP),
    Row("7606 7.10", 0x80, 10, bytes(6), WITHDRAW, IBGP),
    # Four octets through those who speak two
    Row("6793 3", 0xC0, 17, b"\2\1" + PEER, DISCARD),
    Row("6793 3", 0xC0, 18, PEER + bytes(4), DISCARD),
    Row("6793 6", 0xC0, 17, b"\2\1" + PEER, NONE, OLD),
    Row("6793 6", 0xC0, 17, b"\2\2" + PEER, DISCARD, OLD),
    Row("6793 6", 0xC0, 17, b"", DISCARD, OLD),
    Row("6793 6", 0xC0, 17, b"\2\0", DISCARD, OLD),
    Row("6793 6", 0xC0, 17, b"\x09\1" + PEER, DISCARD, OLD),
    Row("6793 6", 0xC0, 18, PEER + bytes(2), DISCARD, OLD),
    Row("7607 2", 0xC0, 17, b"\2\1" + bytes(4), DISCARD, OLD),
    # Attributes that are passed on, or only looked at
    Row("6514 5", 0xC0, 22, bytes(4), WITHDRAW),
    Row("9012 13", 0xC0, 23, b"\0\x08\0\x09", WITHDRAW),
    Row("7311 3", 0x80, 26, b"\1\0\2", DISCARD),
    Row("7311 3", 0xC0, 26, b"\1\0\x0b" + bytes(8), DISCARD),
    Row("9552 8.2.2", 0x80, 29, b"\4\2\0\x09", DISCARD),
    Row("9234 5", 0xC0, 35, bytes(4), NONE),
    Row("9234 5", 0xC0, 35, bytes(3), WITHDRAW),
    Row("8669 6", 0xC0, 40, b"\1\0\x09", DISCARD),
    # Section 3(c): Optional and Transitive have to be right, the other bits may be anything.
    Row("7606 3c", 0xC0, 1, b"\0", WITHDRAW),
    Row("7606 3c", 0xC0, 4, bytes(4), WITHDRAW),
    Row("7606 3c", 0x80, 7, PEER + bytes(4), WITHDRAW),
    Row("7606 3c", 0x80, 8, bytes(4), WITHDRAW),
    Row("7606 3c", 0x4F, 1, b"\0", NONE),
    Row("7606 3c", 0xEF, 8, bytes(4), NONE),
]


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"RFC {row.section}: {row.kind} {row.value.hex()} {row.flags:#x}"
)
def test_h34_a_malformed_attribute_is_handled_as_its_rfc_requires(row: Row) -> None:
    expected = (row.outcome, row.kind if row.outcome else 0)
    assert outcome(encode_attribute(row.flags, row.kind, row.value), row.session) == expected


def test_every_decoded_attribute_has_its_rows() -> None:
    malformed = {row.kind for row in ROWS if row.outcome}
    assert {int(kind) for kind in ATTRIBUTE_RULES} <= malformed


def test_of_a_duplicated_attribute_the_first_is_used() -> None:
    """Section 3(g)."""
    octets = encode_attribute(0x80, 4, b"\0\0\0\1") + encode_attribute(0x80, 4, b"\0\0\0\2")
    raws, _ = frame_attributes(octets)
    block = decode_attributes(raws, EBGP)
    assert block.attributes.med == 1
    assert outcome(octets) == (DISCARD, 4)


@pytest.mark.parametrize("octets", [b"\x40", b"\x40\1", b"\x40\1\5\0", b"\x50\1\0"])
def test_h33_attributes_that_overrun_their_field_are_treated_as_withdraw(octets: bytes) -> None:
    """Section 4."""
    assert outcome(octets)[0] is WITHDRAW


def test_an_unrecognized_well_known_attribute_resets_the_session() -> None:
    """RFC 4271 section 6.3."""
    raws, _ = frame_attributes(encode_attribute(0x40, 99, b"x"))
    with pytest.raises(NotificationError) as caught:
        decode_attributes(raws, EBGP)
    assert (caught.value.code, caught.value.subcode) == (3, 2)


@pytest.mark.parametrize("kind", [28, 40, 23, 35, 255, 99])
def test_h35_unknown_transitive_attributes_never_reset_a_session(kind: int) -> None:
    for size in (0, 1, 4, 255, 256, 4000):
        assert outcome(encode_attribute(0xC0, kind, bytes(size)))[0] < ErrorHandling.SESSION_RESET


def test_h36_an_as_path_beyond_the_limit_is_treated_as_withdraw() -> None:
    hops = b"".join(b"\2\xff" + b"\0\0\xfd\xe9" * 255 for _ in range(4))
    assert outcome(encode_attribute(0x40, 2, hops)) == (WITHDRAW, 2)


@settings(deadline=None)
@given(st.binary(max_size=200), st.booleans(), st.booleans())
def test_decoding_attributes_is_total(
    octets: bytes,
    ebgp: bool,
    as4: bool,
) -> None:
    raws, _ = frame_attributes(octets)
    try:
        block = decode_attributes(raws, Negotiated(ebgp=ebgp, as4=as4))
    except BgpError:
        return
    encode_attributes(block.attributes, as4=as4)
    hash(block.attributes)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (7, PEER + bytes(4)),
        (8, bytes(4)),
        (16, bytes(8)),
        (25, bytes(20)),
        (32, bytes(12)),
        (35, PEER),
    ],
)
def test_rfc4271_5_the_partial_bit_of_a_known_attribute_is_not_cleared(
    kind: int, value: bytes
) -> None:
    """Another router on the path did not know the attribute, or a router on the path attached it."""
    sent = {}
    for flags in (0xC0, 0xE0):
        raws, _ = frame_attributes(encode_attribute(flags, kind, value))
        block = decode_attributes(raws, EBGP)
        assert block.faults == ()
        _, behind = encode_attributes(block.attributes, as4=True)
        sent[flags] = behind
    assert sent == {flags: encode_attribute(flags, kind, value) for flags in (0xC0, 0xE0)}


def test_the_partial_bit_of_an_attribute_that_a_policy_removes_is_nowhere() -> None:
    raws, _ = frame_attributes(encode_attribute(0xE0, 8, bytes(4)))
    kept = decode_attributes(raws, EBGP).attributes
    assert encode_attributes(replace(kept, communities=()), as4=True)[1] == b""
