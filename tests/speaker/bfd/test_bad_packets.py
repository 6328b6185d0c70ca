"""Packets that break a rule: each has its counter and no other effect, whatever its octets are."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from msgspec.structs import replace

from speaker.bfd.authentication import sign
from speaker.bfd.engine import Origin
from speaker.bfd.packet import encode
from speaker.bfd.session_values import Discard, Key, Settings, State
from tests.speaker.bfd.build import LEFT, MS, RIGHT, SECOND, Pair, variables_of


@pytest.mark.parametrize("position", range(0, 24, 2))
def test_no_value_of_two_octets_ends_a_session_unless_the_packet_is_valid(position: int) -> None:
    """All 65,536 of each pair of the mandatory section."""
    fast = Settings(50 * MS, 50 * MS)
    pair = Pair(fast, fast)
    pair.run(5 * SECOND)
    good_one = encode(pair.right.sent[-1][1])
    before, after = good_one[:position], good_one[position + 2 :]
    session, receive = pair.left.session, pair.left.engine.receive
    valid: list[bytes] = []
    bad: list[bytes] = []
    for value in range(1 << 16):
        octets = before + value.to_bytes(2) + after
        (valid if _is_valid(octets, session.local_discriminator) else bad).append(octets)
    origin = Origin(RIGHT, LEFT, "", multihop=False, ttl=255)
    variables, discarded = variables_of(session), pair.left.engine.discarded.total()
    for octets in bad:
        receive(octets, origin, pair.now)
    assert variables_of(session) == variables
    assert pair.left.engine.discarded.total() == discarded + len(bad)
    assert not pair.left.engine.sent
    for octets in valid:
        receive(octets, origin, pair.now)
        if position >= 12:
            # Intervals: any value is taken as it is, and no state changes.
            taken = (
                session.neighbor.desired_min_tx,
                session.neighbor.min_rx,
                session.neighbor.min_echo_rx,
            )
            assert (session.state, taken) == (State.UP, struct.unpack_from("!III", octets, 12))
    assert pair.left.engine.discarded.total() == discarded + len(bad)
    # What the last of them has of the neighbor is replaced by its next packet.
    pair.left.engine.sent.clear()
    pair.run(10 * SECOND)
    assert pair.up()


@pytest.mark.parametrize("position", range(24, 52, 2))
def test_no_other_value_of_two_octets_of_the_authentication_section_is_taken(position: int) -> None:
    """Type, length, key, reserved octet, sequence number and digest: 65,535 of each pair."""
    key = Key(7, b"secret")
    keyed = Settings(50 * MS, 50 * MS, key=key)
    pair = Pair(keyed, keyed)
    pair.run(5 * SECOND)
    session, engine = pair.left.session, pair.left.engine
    assert session.received_sequence.number is not None
    packet = pair.right.sent[-1][1]._replace(final=False)
    good_one = sign(encode(packet), key, session.received_sequence.number + 1)
    before, after = good_one[:position], good_one[position + 2 :]
    origin = Origin(RIGHT, LEFT, "", multihop=False, ttl=255)
    variables, discarded = variables_of(session), engine.discarded.total()
    for value in range(1 << 16):
        octets = before + value.to_bytes(2) + after
        if octets != good_one:
            engine.receive(octets, origin, pair.now)
    assert variables_of(session) == variables
    assert not engine.sent
    assert engine.discarded == {Discard.AUTHENTICATION_FAILED: 65_535}
    assert engine.discarded.total() == discarded + 65_535
    engine.receive(good_one, origin, pair.now)
    assert session.packets_received == variables["packets_received"] + 1


BROKEN: dict[Discard, tuple[dict[str, Any], dict[int, int], dict[str, Any]]] = {
    # Fields of the packet, octets of it, where it comes from.
    Discard.TTL: ({}, {}, {"ttl": 254}),
    Discard.VERSION: ({}, {0: 0x40}, {}),
    Discard.LENGTH: ({}, {3: 25}, {}),
    Discard.DETECT_MULT: ({"detect_multiplier": 0}, {}, {}),
    Discard.MULTIPOINT: ({}, {1: 0xC1}, {}),
    Discard.MY_DISCRIMINATOR: ({"my_discriminator": 0}, {}, {}),
    Discard.YOUR_DISCRIMINATOR: ({"your_discriminator": 7}, {}, {}),
    Discard.STATE: ({"your_discriminator": 0}, {}, {}),
    Discard.NO_SESSION: ({"your_discriminator": 0, "state": State.DOWN}, {}, {"peer": "192.0.2.9"}),
    Discard.AUTHENTICATION_MISSING: ({}, {}, {}),
    Discard.AUTHENTICATION_UNEXPECTED: ({"authenticated": True}, {}, {}),
    Discard.AUTHENTICATION_FAILED: ({"authenticated": True}, {}, {}),
    Discard.ADMIN_DOWN: ({}, {}, {}),
}


@pytest.mark.parametrize("discard", Discard)
def test_each_check_has_its_counter_and_no_other_effect(discard: Discard) -> None:
    keyed = discard in {Discard.AUTHENTICATION_MISSING, Discard.AUTHENTICATION_FAILED}
    key = Key(7, b"secret")
    here = Settings(50 * MS, 50 * MS, key=key if keyed else None)
    pair = Pair(here, here)
    pair.run(5 * SECOND)
    assert pair.up()
    session, engine = pair.left.session, pair.left.engine
    fields, changed, where = BROKEN[discard]
    good_one = pair.right.sent[-1][1]._replace(final=False, authenticated=False)
    octets = bytearray(encode(good_one._replace(**fields)))
    for position, value in changed.items():
        octets[position] = value
    whole = bytes(octets)
    if fields.get("authenticated"):
        whole = sign(whole, Key(7, b"another"), 1)
    if discard is Discard.ADMIN_DOWN:
        pair.configure(pair.left, replace(here, admin_down=True))
        engine.receive(whole, Origin(RIGHT, LEFT, "", multihop=False, ttl=255), pair.now)
        engine.discarded.clear()
    engine.sent.clear()
    engine.changes.clear()
    before = variables_of(session)
    origin = Origin(RIGHT, LEFT, "", multihop=False, ttl=255)._replace(**where)
    engine.receive(whole, origin, pair.now + 10 * MS)
    assert engine.discarded == {discard: 1}
    assert variables_of(session) == before
    assert (engine.sent, engine.changes) == ([], [])


def _is_valid(octets: bytes, ours: int) -> bool:
    """By RFC 5880 section 6.8.6, for a session without authentication that is Up."""
    state, flags = octets[1] >> 6, octets[1] & 0x3F
    yours = int.from_bytes(octets[8:12])
    return (
        octets[0] >> 5 == 1
        and octets[3] == len(octets)
        and octets[2] > 0
        and not flags & 0x05  # A, M
        and any(octets[4:8])
        and (yours == ours or (not yours and state < 2))
    )
