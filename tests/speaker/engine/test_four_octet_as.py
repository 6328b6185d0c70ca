"""RFC 6793: between a speaker with four-octet AS numbers and one with two, as octets on the wire."""

from __future__ import annotations

import pytest

from speaker.attribute import encode_attribute
from speaker.capability import Capability, Multiprotocol
from speaker.iana import AS_TRANS, IPV4_UNICAST
from speaker.message import KEEPALIVE, decode_open
from speaker.nlri import prefix_to_wire
from tests.speaker.hostile import ATTACKER_ASN, BYSTANDER_ASN, ORIGIN, Arena, open_of, update
from tests.speaker.raw import LOCAL_ASN, Raw

OLD: tuple[Capability, ...] = (Multiprotocol(IPV4_UNICAST),)
BIG = 400000
PREFIX = prefix_to_wire("10.50.0.0/16")[1]


def sequence(*asns: int, width: int) -> bytes:
    return bytes((2, len(asns))) + b"".join(asn.to_bytes(width, "big") for asn in asns)


def path(*asns: int, width: int) -> bytes:
    return encode_attribute(0x40, 2, sequence(*asns, width=width))


def hop(octet: int) -> bytes:
    return encode_attribute(0x40, 3, bytes((10, 0, 0, octet)))


def aggregator(asn: int, width: int) -> bytes:
    return encode_attribute(0xC0, 7, asn.to_bytes(width, "big") + b"\x0a\0\0\3")


def old() -> Arena:
    """Return a session with a speaker of two octets, beside the bystander's with four."""
    arena = Arena()
    arena.accept()
    arena.send(open_of(OLD) + KEEPALIVE)
    assert arena.status().established
    return arena


def told_to_old(arena: Arena, attributes: bytes) -> bytes:
    """Send an UPDATE as the new speaker, and return the UPDATE that the old speaker gets."""
    before = len(arena.messages())
    arena.send(update(ORIGIN + attributes + hop(3), PREFIX), arena.quiet)
    ((kind, body),) = arena.messages()[before:]
    assert kind == 2
    return body


def test_rfc6793_4_2_1_an_as_that_two_octets_cannot_hold_opens_as_as_trans() -> None:
    raw = Raw(local_asn=BIG).to_open_sent()
    body = raw.messages[0][1]
    assert body[1:3] == AS_TRANS.to_bytes(2, "big")
    assert decode_open(body).asn == BIG


def test_rfc6793_4_2_2_an_old_speaker_is_sent_as_trans_and_as4_path() -> None:
    body = told_to_old(old(), path(BYSTANDER_ASN, BIG, width=4) + aggregator(BIG, 4))
    expected = LOCAL_ASN, BYSTANDER_ASN
    assert path(*expected, AS_TRANS, width=2) in body
    assert encode_attribute(0xC0, 17, sequence(*expected, BIG, width=4)) in body
    assert aggregator(AS_TRANS, 2) in body
    assert encode_attribute(0xC0, 18, BIG.to_bytes(4, "big") + b"\x0a\0\0\3") in body


def test_rfc6793_4_2_2_a_path_of_two_octets_is_sent_without_as4_path() -> None:
    body = told_to_old(old(), path(BYSTANDER_ASN, 64512, width=4) + aggregator(64512, 4))
    assert path(LOCAL_ASN, BYSTANDER_ASN, 64512, width=2) in body
    assert aggregator(64512, 2) in body
    assert b"\xc0\x11" not in body
    assert b"\xc0\x12" not in body


@pytest.mark.parametrize(
    ("attributes", "shown"),
    [
        # The old part in front, the new one behind.
        (
            path(ATTACKER_ASN, 64512, AS_TRANS, width=2)
            + encode_attribute(0xC0, 17, sequence(64512, BIG, width=4)),
            f"{ATTACKER_ASN} 64512 {BIG}",
        ),
        # More new ones than there are old ones cannot be.
        (
            path(ATTACKER_ASN, width=2)
            + encode_attribute(0xC0, 17, sequence(ATTACKER_ASN, BIG, width=4)),
            f"{ATTACKER_ASN}",
        ),
        # An aggregator of two octets alone does not contradict it; beside one of four it is
        # younger than both, unless it stands for that one.
        (
            path(ATTACKER_ASN, AS_TRANS, width=2)
            + aggregator(ATTACKER_ASN, 2)
            + encode_attribute(0xC0, 17, sequence(ATTACKER_ASN, BIG, width=4)),
            f"{ATTACKER_ASN} {BIG}",
        ),
        (
            path(ATTACKER_ASN, AS_TRANS, width=2)
            + aggregator(ATTACKER_ASN, 2)
            + encode_attribute(0xC0, 17, sequence(ATTACKER_ASN, BIG, width=4))
            + encode_attribute(0xC0, 18, BIG.to_bytes(4, "big") + b"\x0a\0\0\3"),
            f"{ATTACKER_ASN} {AS_TRANS}",
        ),
        (
            path(ATTACKER_ASN, AS_TRANS, width=2)
            + aggregator(AS_TRANS, 2)
            + encode_attribute(0xC0, 17, sequence(ATTACKER_ASN, BIG, width=4))
            + encode_attribute(0xC0, 18, BIG.to_bytes(4, "big") + b"\x0a\0\0\3"),
            f"{ATTACKER_ASN} {BIG}",
        ),
    ],
)
def test_rfc6793_4_2_3_the_path_of_an_old_speaker_is_merged_with_as4_path(
    attributes: bytes, shown: str
) -> None:
    arena = old()
    arena.send(update(ORIGIN + attributes + hop(2), PREFIX))
    (route,) = arena.received().values()
    assert route.as_path == shown
    arena.check()


def test_rfc6793_4_1_a_new_speaker_is_sent_one_path_of_four_octets() -> None:
    arena = old()
    before = len(arena.messages(arena.quiet))
    old_path = path(ATTACKER_ASN, AS_TRANS, width=2)
    new_path = encode_attribute(0xC0, 17, sequence(ATTACKER_ASN, BIG, width=4))
    arena.send(update(ORIGIN + old_path + new_path + hop(2), PREFIX))
    ((_, body),) = arena.messages(arena.quiet)[before:]
    assert path(LOCAL_ASN, ATTACKER_ASN, BIG, width=4) in body
    assert b"\xc0\x11" not in body


def test_a_loop_is_seen_in_the_path_of_four_octets() -> None:
    """RFC 4271 section 9.1.2: what is looked for is in AS4_PATH only."""
    arena = Arena(local_asn=BIG)
    arena.accept()
    arena.send(open_of(OLD) + KEEPALIVE)
    arena.send(
        update(
            ORIGIN
            + path(ATTACKER_ASN, AS_TRANS, width=2)
            + hop(2)
            + encode_attribute(0xC0, 17, sequence(ATTACKER_ASN, BIG, width=4)),
            PREFIX,
        )
    )
    (route,) = arena.received().values()
    assert not route.best
    assert route.reason == "own AS in the AS path"
