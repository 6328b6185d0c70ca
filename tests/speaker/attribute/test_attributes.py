"""Path attributes: RFC 7606's table row by row, and that nothing else comes out of any octets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speaker.attribute import (
    Outcome,
    attribute,
    decode_attributes,
    encode_attributes,
    frame,
)
from speaker.errors import BgpError, NotificationError
from speaker.negotiated import Negotiated

EBGP = Negotiated(peer_asn=65001)
IBGP = Negotiated(ebgp=False, peer_asn=65001, local_asn=65001)


def outcome(octets: bytes, session: Negotiated = EBGP) -> tuple[Outcome, int]:
    """Judge one attribute: the strongest outcome, and the attribute."""
    raws, overrun = frame(octets)
    faults = decode_attributes(raws, session).faults + ((overrun,) if overrun else ())
    worst = max(faults, key=lambda fault: fault.outcome, default=None)
    return (worst.outcome, worst.attribute) if worst else (Outcome.NONE, 0)


WITHDRAW, DISCARD = Outcome.TREAT_AS_WITHDRAW, Outcome.ATTRIBUTE_DISCARD


@pytest.mark.parametrize(
    ("flags", "kind", "value", "expected"),
    [
        (0x40, 1, b"", WITHDRAW),  # section 7.1
        (0x40, 1, b"\3", WITHDRAW),
        (0x40, 2, b"\2\1\0\0", WITHDRAW),  # section 7.2
        (0x40, 2, b"\2\1\0\0\0\0", WITHDRAW),  # AS 0, RFC 7607
        (0x40, 2, b"\2\1\0\0\0\1", WITHDRAW),  # not the peer's AS first
        (0x40, 2, b"\3\1\0\0\xfd\xe9", WITHDRAW),  # a confederation segment, RFC 5065
        (0x40, 3, b"\0\0\0", WITHDRAW),  # section 7.3
        (0x40, 3, b"\xe0\0\0\1", WITHDRAW),
        (0x80, 4, b"\0", WITHDRAW),  # section 7.4
        (0x40, 6, b"x", DISCARD),  # section 7.6
        (0xC0, 7, bytes(6), DISCARD),  # section 7.7
        (0xC0, 8, b"", WITHDRAW),  # section 7.8
        (0xC0, 8, bytes(5), WITHDRAW),
        (0xC0, 16, bytes(7), WITHDRAW),  # section 7.14
        (0xC0, 32, bytes(11), WITHDRAW),  # RFC 8092 section 6
        (0xC0, 35, bytes(3), WITHDRAW),  # RFC 9234 section 5
        (0x80, 26, b"\1\0\2", DISCARD),  # RFC 7311
        (0x40, 5, bytes(4), DISCARD),  # section 7.5: not for an external peer to send
        (0x80, 9, bytes(4), DISCARD),  # section 7.9
        (0x80, 10, bytes(4), DISCARD),  # section 7.10
        (0xC0, 17, b"\2\1\0\0\0\1", DISCARD),  # RFC 6793 section 4.1
        (0x80, 1, b"\0", WITHDRAW),  # section 3(c): flags
        (0xC0, 4, bytes(4), WITHDRAW),
    ],
)
def test_h34_a_malformed_attribute_costs_what_rfc_7606_says(
    flags: int, kind: int, value: bytes, expected: Outcome
) -> None:
    assert outcome(attribute(flags, kind, value)) == (expected, kind)


@pytest.mark.parametrize(
    ("kind", "flags", "value"), [(5, 0x40, b"\0"), (9, 0x80, b"\0"), (10, 0x80, b"")]
)
def test_what_an_internal_peer_may_send_has_to_be_right(
    kind: int, flags: int, value: bytes
) -> None:
    assert outcome(attribute(flags, kind, value), IBGP) == (WITHDRAW, kind)


def test_of_an_attribute_that_is_there_twice_the_first_counts() -> None:
    """Section 3(g)."""
    octets = attribute(0x80, 4, b"\0\0\0\1") + attribute(0x80, 4, b"\0\0\0\2")
    raws, _ = frame(octets)
    block = decode_attributes(raws, EBGP)
    assert block.attributes.med == 1
    assert outcome(octets) == (DISCARD, 4)


@pytest.mark.parametrize("octets", [b"\x40", b"\x40\1", b"\x40\1\5\0", b"\x50\1\0"])
def test_h33_attributes_that_overrun_their_field_are_a_withdrawal(octets: bytes) -> None:
    """Section 4."""
    assert outcome(octets)[0] is WITHDRAW


def test_an_unknown_well_known_attribute_ends_the_session() -> None:
    """RFC 4271 section 6.3."""
    raws, _ = frame(attribute(0x40, 99, b"x"))
    with pytest.raises(NotificationError) as caught:
        decode_attributes(raws, EBGP)
    assert (caught.value.code, caught.value.subcode) == (3, 2)


@pytest.mark.parametrize("kind", [28, 40, 23, 35, 255, 99])
def test_h35_unknown_transitive_attributes_never_end_a_session(kind: int) -> None:
    for size in (0, 1, 4, 255, 256, 4000):
        assert outcome(attribute(0xC0, kind, bytes(size)))[0] < Outcome.SESSION_RESET


def test_h36_a_path_without_end_is_a_withdrawal() -> None:
    hops = b"".join(b"\2\xff" + b"\0\0\xfd\xe9" * 255 for _ in range(4))
    assert outcome(attribute(0x40, 2, hops)) == (WITHDRAW, 2)


@settings(deadline=None)
@given(st.binary(max_size=200), st.booleans(), st.booleans())
def test_any_octets_are_judged_and_nothing_else_is_raised(
    octets: bytes,
    ebgp: bool,
    as4: bool,
) -> None:
    raws, _ = frame(octets)
    try:
        block = decode_attributes(raws, Negotiated(ebgp=ebgp, as4=as4))
    except BgpError:
        return
    encode_attributes(block.attributes, as4=as4)
    hash(block.attributes)
