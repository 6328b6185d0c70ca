"""Update packing: every prefix is in one message, and messages are full and within the limit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.iana import IPV4_UNICAST, IPV6_UNICAST
from speaker.message import UpdateDecoder
from speaker.negotiated import Negotiated
from speaker.peer.message_stream import MessageStream
from speaker.rib import pack
from speaker.rib.pack_fast_path import fill_fields
from speaker.rib.pack_fields import fill_fields_one_by_one

ATTRIBUTES = bytes.fromhex("4001010040020602010000fdea")
NEXT_HOP = bytes.fromhex("4003040a000002")
SESSION = Negotiated(peer_asn=65002)


def prefixes(bits: int) -> st.SearchStrategy[bytes]:
    """Prefixes as their wire octets, host bits zero."""

    def make(length: int, value: int) -> bytes:
        octets = (length + 7) // 8
        masked = value >> (bits - length) << (octets * 8 - length) if length else 0
        return bytes((length,)) + masked.to_bytes(octets, "big")

    return st.builds(make, st.integers(0, bits), st.integers(0, 2**bits - 1))


def read(messages: list[bytes], limit: int) -> tuple[list[bytes], list[bytes]]:
    decoder = UpdateDecoder(SESSION)
    announced: list[bytes] = []
    withdrawn: list[bytes] = []
    for message in messages:
        assert len(message) <= limit
        ((_, (body,)),) = MessageStream(65535).messages(message)
        update = decoder.decode(body)
        assert not update.faults
        announced += [nlri for reach in update.announced for nlri in reach.nlri]
        withdrawn += [nlri for unreach in update.withdrawn for nlri in unreach.nlri]
    return announced, withdrawn


LIMITS = st.sampled_from([120, 300, 4096, 65535])


@given(st.lists(prefixes(32), min_size=1, max_size=60), LIMITS)
def test_ipv4_prefixes_are_decoded_in_order(nlri: list[bytes], limit: int) -> None:
    messages = pack.announce(ATTRIBUTES + NEXT_HOP, nlri, limit)
    assert read(messages, limit) == (nlri, [])
    assert read(pack.withdraw(nlri, limit), limit) == ([], nlri)


@given(st.lists(prefixes(128), min_size=1, max_size=60), LIMITS)
def test_ipv6_prefixes_are_decoded_in_order(nlri: list[bytes], limit: int) -> None:
    hop = bytes.fromhex("fd00") + bytes(13) + b"\x01"
    messages = pack.announce_mp(IPV6_UNICAST, hop, ATTRIBUTES, nlri, limit)
    assert read(messages, limit) == (nlri, [])
    assert read(pack.withdraw_mp(IPV6_UNICAST, nlri, limit), limit) == ([], nlri)


def fields_or_error(
    fill: Callable[[list[bytes], int], list[bytes]], nlri: list[bytes], room: int
) -> list[bytes] | str:
    try:
        return fill(nlri, room)
    except pack.AttributesTooLong as error:
        return str(error)


@given(
    st.one_of(
        st.lists(prefixes(32), max_size=60),
        st.builds(lambda nlri, count: [nlri] * count, prefixes(32), st.integers(0, 90)),
    ),
    st.integers(-3, 120),
)
def test_fast_path_and_slow_path_fill_equal_fields(nlri: list[bytes], room: int) -> None:
    assert fields_or_error(fill_fields, nlri, room) == fields_or_error(
        fill_fields_one_by_one, nlri, room
    )


@given(st.lists(prefixes(32), min_size=1, max_size=400))
def test_messages_are_as_full_as_they_can_be(nlri: list[bytes]) -> None:
    messages = pack.announce(ATTRIBUTES + NEXT_HOP, nlri, 300)
    for message in messages[:-1]:
        assert len(message) > 300 - 5


def test_ten_thousand_host_routes_take_thirteen_messages() -> None:
    nlri = [b"\x20" + (0x0A000000 + n).to_bytes(4, "big") for n in range(10_000)]
    assert len(pack.announce(ATTRIBUTES + NEXT_HOP, nlri, 4096)) == 13


def test_no_prefix_is_no_message() -> None:
    assert pack.announce(ATTRIBUTES, [], 4096) == []
    assert pack.withdraw([], 4096) == []


def test_attributes_without_room_for_a_prefix_are_rejected() -> None:
    with pytest.raises(pack.AttributesTooLong):
        pack.announce(bytes(4070), [b"\x20\x0a\x00\x00\x01"], 4096)


@pytest.mark.parametrize("family", [IPV4_UNICAST, IPV6_UNICAST])
def test_end_of_rib_is_decoded_as_such_rfc_4724_section_2(family: tuple[int, int]) -> None:
    known = IPV4_UNICAST if family == IPV4_UNICAST else IPV6_UNICAST
    ((_, (body,)),) = MessageStream().messages(pack.end_of_rib(known))
    assert UpdateDecoder(SESSION).decode(body).end_of_rib == known
