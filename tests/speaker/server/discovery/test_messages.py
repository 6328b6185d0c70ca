"""Router solicitations and advertisements: encoding, and validation (RFC 4861)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.server.discovery import messages

NEIGHBOR = "fe80::1"


def test_section_4_1_a_solicitation_is_eight_octets() -> None:
    assert messages.solicitation() == bytes.fromhex("8500000000000000")


def test_section_4_2_an_advertisement_has_a_router_lifetime_of_zero() -> None:
    plain = messages.advertisement()
    assert len(plain) == 16
    assert plain[6:8] == b"\0\0"
    with_address = messages.advertisement(bytes(range(6)))
    assert with_address[16:] == bytes.fromhex("0101000102030405")


@pytest.mark.parametrize("data", [messages.solicitation(), messages.advertisement(bytes(6))])
def test_encoded_messages_are_valid(data: bytes) -> None:
    assert messages.read(data, f"{NEIGHBOR}%eth0", 255) == (data[0], NEIGHBOR)


ADVERTISEMENT = messages.advertisement()


@pytest.mark.parametrize(
    ("data", "source", "hop_limit"),
    [
        (ADVERTISEMENT, NEIGHBOR, 254),
        (ADVERTISEMENT, "2001:db8::1", 255),
        (ADVERTISEMENT, "::", 255),
        (ADVERTISEMENT[:15], NEIGHBOR, 255),
        (ADVERTISEMENT[:1] + b"\1" + ADVERTISEMENT[2:], NEIGHBOR, 255),
        (ADVERTISEMENT + b"\1\0", NEIGHBOR, 255),
        (ADVERTISEMENT + b"\1\2" + bytes(6), NEIGHBOR, 255),
        (ADVERTISEMENT + b"\1", NEIGHBOR, 255),
        (messages.solicitation()[:7], NEIGHBOR, 255),
        (b"\x87" + bytes(23), NEIGHBOR, 255),
        (b"", NEIGHBOR, 255),
    ],
)
def test_sections_6_1_1_and_6_1_2_invalid_messages_are_ignored(
    data: bytes, source: str, hop_limit: int
) -> None:
    assert messages.read(data, source, hop_limit) is None


@given(st.binary(max_size=100))
def test_any_octets_are_decoded_or_ignored(data: bytes) -> None:
    messages.read(data, NEIGHBOR, 255)
