"""The control packet, and each check of RFC 5880 section 6.8.6 on one packet alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.bfd.packet import HEADER, Packet, decode, encode
from speaker.bfd.session_values import Discard, State

GOOD = bytes.fromhex("20c80318 00000001 00000002 0000c350 0000c350 00000000")
PACKET = Packet(
    diagnostic=0,
    state=State.UP,
    poll=False,
    final=False,
    independent=True,
    demand=False,
    detect_multiplier=3,
    my_discriminator=1,
    your_discriminator=2,
    desired_min_tx=50_000,
    required_min_rx=50_000,
    required_min_echo_rx=0,
    authenticated=False,
    octets=GOOD,
)


def test_a_packet_has_the_layout_of_section_4_1() -> None:
    assert decode(GOOD) == PACKET
    assert encode(PACKET) == GOOD


def changed(position: int, value: int) -> bytes:
    return GOOD[:position] + bytes([value]) + GOOD[position + 1 :]


@pytest.mark.parametrize(
    ("octets", "discard"),
    [
        (changed(0, 0x00), Discard.VERSION),
        (changed(0, 0x40), Discard.VERSION),
        (b"", Discard.LENGTH),
        (GOOD[:23], Discard.LENGTH),
        (changed(3, 23), Discard.LENGTH),
        (changed(3, 25), Discard.LENGTH),
        (changed(1, 0xCC), Discard.LENGTH),  # A without a section
        (changed(2, 0), Discard.DETECT_MULT),
        (changed(1, 0xC9), Discard.MULTIPOINT),
        (changed(7, 0), Discard.MY_DISCRIMINATOR),
        (changed(11, 0), Discard.STATE),
        (changed(11, 0)[:1] + b"\x88" + changed(11, 0)[2:], Discard.STATE),
    ],
    ids=[
        "version-0",
        "version-2",
        "empty",
        "short",
        "length-under-24",
        "length-over-payload",
        "authentication-absent",
        "detect-mult-0",
        "multipoint",
        "my-discriminator-0",
        "up-without-your-discriminator",
        "init-without-your-discriminator",
    ],
)
def test_a_packet_that_breaks_a_rule_is_discarded(octets: bytes, discard: Discard) -> None:
    assert decode(octets) is discard


@pytest.mark.parametrize("state", [State.DOWN, State.ADMIN_DOWN])
def test_a_packet_that_is_down_needs_no_discriminator_of_ours(state: State) -> None:
    octets = changed(11, 0)
    decoded = decode(octets[:1] + bytes([state << 6]) + octets[2:])
    assert isinstance(decoded, Packet)
    assert decoded.state is state


def test_octets_behind_the_length_are_ignored() -> None:
    assert decode(GOOD + b"padding") == PACKET


@pytest.mark.parametrize("position", range(0, HEADER.size, 2))
def test_all_values_of_each_pair_of_octets_are_a_packet_or_a_reason(position: int) -> None:
    before, after = GOOD[:position], GOOD[position + 2 :]
    for value in range(1 << 16):
        decoded = decode(before + value.to_bytes(2) + after)
        assert isinstance(decoded, Packet | Discard)
        if isinstance(decoded, Packet) and not decoded.authenticated:
            again = decode(encode(decoded))
            assert isinstance(again, Packet)
            assert again._replace(octets=b"") == decoded._replace(octets=b"")


@given(st.binary(max_size=80))
def test_any_octets_are_a_packet_or_a_reason(octets: bytes) -> None:
    assert isinstance(decode(octets), Packet | Discard)
