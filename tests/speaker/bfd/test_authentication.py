"""SHA1 authentication: RFC 5880 section 6.7.4."""

from __future__ import annotations

import hashlib

import pytest

from speaker.bfd.authentication import ReceivedSequence, accepted_sequence, sign
from speaker.bfd.packet import Packet, decode, encode
from speaker.bfd.session_values import Discard, Key, Settings
from tests.speaker.bfd.test_packet import PACKET

KEY = Key(7, b"secret")
KEYED = Key(7, b"secret", meticulous=False)


def signed(key: Key, sequence: int) -> Packet:
    octets = sign(encode(PACKET._replace(authenticated=True)), key, sequence)
    packet = decode(octets)
    assert isinstance(packet, Packet)
    return packet


def test_the_section_has_the_layout_of_section_4_4() -> None:
    packet = signed(KEY, 0x01020304)
    assert len(packet.octets) == 52
    assert packet.octets[24:32] == bytes([5, 28, 7, 0, 1, 2, 3, 4])
    whole = packet.octets[:32] + b"secret".ljust(20, b"\0")
    assert packet.octets[32:] == hashlib.sha1(whole, usedforsecurity=False).digest()
    assert signed(KEYED, 0).octets[24] == 4


@pytest.mark.parametrize(
    ("key", "ahead", "accepted"),
    [
        (KEY, 0, False),
        (KEY, 1, True),
        (KEY, 9, True),
        (KEY, 10, False),
        (KEY, -1, False),
        (KEYED, 0, True),
        (KEYED, 9, True),
        (KEYED, 10, False),
        (KEYED, -1, False),
    ],
)
@pytest.mark.parametrize("last", [5, (1 << 32) - 2], ids=["in-the-middle", "at-the-end"])
def test_sequence_numbers_are_in_a_window(
    key: Key, ahead: int, last: int, *, accepted: bool
) -> None:
    sequence = (last + ahead) % (1 << 32)
    expected = sequence if accepted else None
    assert accepted_sequence(signed(key, sequence), key, last) == expected


@pytest.mark.parametrize("multiplier", [1, 20, 255])
def test_the_window_has_three_times_the_detect_mult_of_the_packet(multiplier: int) -> None:
    packet = PACKET._replace(authenticated=True, detect_multiplier=multiplier)
    for ahead, accepted in ((3 * multiplier, True), (3 * multiplier + 1, False)):
        found = decode(sign(encode(packet), KEY, 100 + ahead))
        assert isinstance(found, Packet)
        assert (accepted_sequence(found, KEY, 100) is not None) is accepted


def test_without_a_known_number_any_is_taken() -> None:
    assert accepted_sequence(signed(KEY, 12345), KEY, None) == 12345


@pytest.mark.parametrize("position", [0, 5, 12, 24, 25, 26, 28, 31, 32, 51])
def test_a_changed_octet_is_noticed(position: int) -> None:
    octets = bytearray(signed(KEY, 1).octets)
    octets[position] ^= 0x04
    packet = PACKET._replace(authenticated=True, octets=bytes(octets))
    assert accepted_sequence(packet, KEY, 0) is None


def test_a_section_of_another_length_is_refused() -> None:
    packet = signed(KEY, 1)
    for octets in (packet.octets[:-1], packet.octets + b"\0", packet.octets[:26]):
        assert accepted_sequence(packet._replace(octets=octets), KEY, 0) is None


def test_a_secret_is_not_shown() -> None:
    assert "secret" not in repr(KEY)
    assert "secret" not in repr(Settings(key=KEY))


@pytest.mark.parametrize("secret", [b"", b"x" * 21])
def test_a_secret_has_1_to_20_octets(secret: bytes) -> None:
    with pytest.raises(ValueError, match="1 to 20 octets"):
        Settings(key=Key(1, secret))


class TestReceivedSequence:
    def test_a_number_is_taken_and_not_accepted_again(self) -> None:
        received = ReceivedSequence()
        assert received.check(signed(KEY, 5), KEY, silent=False) is None
        assert received.number == 5
        discarded = received.check(signed(KEY, 5), KEY, silent=False)
        assert discarded is Discard.AUTHENTICATION_FAILED

    def test_after_silence_any_number_is_accepted_if_the_packet_is_authentic(self) -> None:
        received = ReceivedSequence()
        received.check(signed(KEY, 500), KEY, silent=False)
        assert received.check(signed(KEY, 5), Key(7, b"other"), silent=True) is not None
        assert received.number is None
        assert received.check(signed(KEY, 5), KEY, silent=True) is None
        assert received.number == 5

    def test_both_ends_have_a_key_or_none(self) -> None:
        plain = PACKET._replace(authenticated=False)
        check = ReceivedSequence().check
        assert check(plain, None, silent=False) is None
        assert check(plain, KEY, silent=False) is Discard.AUTHENTICATION_MISSING
        assert check(signed(KEY, 1), None, silent=False) is Discard.AUTHENTICATION_UNEXPECTED
