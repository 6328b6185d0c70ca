"""Prefixes as text and octets; NLRI fields (RFC 4271 section 4.3, RFC 7911 section 3)."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.errors import Truncated
from speaker.iana import Afi, Family
from speaker.nlri import (
    IPV4_UNICAST,
    IPV6_UNICAST,
    decode_add_path,
    decode_prefixes,
    prefix_to_text,
    prefix_to_wire,
)
from speaker.nlri.decode import decode_one_by_one

NETWORKS = st.one_of(
    st.builds(
        lambda n, bits: ipaddress.ip_network((n, bits), strict=False),
        st.integers(0, 2**32 - 1).map(ipaddress.IPv4Address),
        st.integers(0, 32),
    ),
    st.builds(
        lambda n, bits: ipaddress.ip_network((n, bits), strict=False),
        st.integers(0, 2**128 - 1).map(ipaddress.IPv6Address),
        st.integers(0, 128),
    ),
)


@given(NETWORKS)
def test_a_prefix_is_encoded_and_decoded_to_itself(network: ipaddress.IPv4Network) -> None:
    family, nlri = prefix_to_wire(str(network))
    assert family == (IPV4_UNICAST if network.version == 4 else IPV6_UNICAST)
    assert len(nlri) == 1 + (network.prefixlen + 7) // 8
    assert ipaddress.ip_network(prefix_to_text(family, nlri)) == network


@pytest.mark.parametrize("text", ["10.0.0.1/24", "10.0.0.0", "x/8", "fd00::1%eth0/128", "1/8/8"])
def test_text_that_is_no_prefix_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        prefix_to_wire(text)


TEXTS = st.builds(
    "{}/{}".format,
    st.one_of(
        st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){2,4}", fullmatch=True),
        st.from_regex(r"[0-9a-f]{0,5}:[0-9a-f:.]{0,12}(%a)?", fullmatch=True),
        st.sampled_from(["10.1.0.0", "010.0.0.0", "fd00::", "::ffff:10.0.0.0", "::", "0.0.0.0"]),
    ),
    st.sampled_from(["0", "8", "08", "16", "31", "32", "33", "64", "128", "129", "-1", "+8", "1_6",
                     "", "255.0.0.0", "8/8", " 8", "\u0661", "9" * 5000]),
)  # fmt: skip


@given(TEXTS)
def test_prefixes_are_parsed_as_by_the_standard_library(text: str) -> None:
    try:
        expected = None if "%" in text else ipaddress.ip_network(text)
    except ValueError:
        expected = None
    try:
        family, nlri = prefix_to_wire(text)
    except ValueError:
        assert expected is None
    else:
        assert ipaddress.ip_network(prefix_to_text(family, nlri)) == expected


@given(NETWORKS, st.integers(1, 900))
def test_a_field_of_equal_prefixes_is_decoded(network: ipaddress.IPv4Network, count: int) -> None:
    family, nlri = prefix_to_wire(str(network))
    assert decode_prefixes(nlri * count, family.afi) == [nlri] * count


Decoder = Callable[[bytes, int], list[bytes]]


def _outcome(decode: Decoder, data: bytes, afi: Afi) -> list[bytes] | str:
    try:
        return decode(data, afi)
    except Truncated as error:
        return str(error)


def reference(data: bytes, afi: int) -> list[bytes]:
    """Decode a field by the letter of RFC 4271 section 4.3, without regard to speed."""
    found = []
    while data:
        bits, size = data[0], (data[0] + 7) // 8
        limit = 32 if afi == Afi.IPV4 else 128
        if bits > limit:
            raise Truncated(f"a prefix of {bits} bits in a family of {limit}")
        if len(data) < 1 + size:
            raise Truncated(f"the last prefix needs {1 + size - len(data)} more octets")
        value = int.from_bytes(data[1 : 1 + size], "big")
        value = value >> (8 * size - bits) << (8 * size - bits)
        found.append(data[:1] + value.to_bytes(size, "big"))
        data = data[1 + size :]
    return found


def check(data: bytes, afi: Afi) -> None:
    """Assert that fast path, slow path and reference agree on a field, errors included."""
    expected = _outcome(reference, data, afi)
    assert _outcome(decode_one_by_one, data, afi) == expected
    assert _outcome(decode_prefixes, data, afi) == expected


@given(st.binary(max_size=80), st.sampled_from([Afi.IPV4, Afi.IPV6]))
def test_fast_path_and_slow_path_agree_on_any_octets(data: bytes, afi: Afi) -> None:
    check(data, afi)


# Fields of few lengths and many prefixes, some with trailing bits.
FIELDS = st.lists(
    st.tuples(st.sampled_from([0, 1, 8, 17, 24, 25, 32, 33]), st.binary(min_size=5, max_size=5)),
    max_size=60,
).map(lambda items: b"".join(bytes((n,)) + octets[: (n + 7) // 8] for n, octets in items))


@given(FIELDS)
def test_fast_path_and_slow_path_agree_on_fields_with_a_malformed_prefix(data: bytes) -> None:
    check(data, Afi.IPV4)


@given(NETWORKS, st.integers(50, 600), st.data())
def test_fast_path_and_slow_path_agree_on_long_fields_of_one_length(
    network: ipaddress.IPv4Network, count: int, data: st.DataObject
) -> None:
    family, nlri = prefix_to_wire(str(network))
    field = bytearray(nlri * count)
    check(bytes(field), Afi(family.afi))
    field[data.draw(st.integers(0, len(field) - 1))] = data.draw(st.integers(0, 255))
    check(bytes(field), Afi(family.afi))


def test_h40_trailing_bits_are_cleared() -> None:
    assert decode_prefixes(b"\x09\xff\xff", 1) == [b"\x09\xff\x80"]
    assert decode_add_path(b"\0\0\0\1\x09\xff\xff", 1) == [(1, b"\x09\xff\x80")]


@pytest.mark.parametrize("data", [b"\x21\1\2\3\4\5", b"\x18\x0a\0", b"\xff", b"\x81" + bytes(17)])
def test_h40_an_impossible_length_or_a_truncated_prefix_is_rejected(data: bytes) -> None:
    with pytest.raises(Truncated):
        decode_prefixes(data, 1)
    with pytest.raises(Truncated):
        decode_add_path(b"\0\0\0\1" + data, 1)


def test_a_family_has_a_name() -> None:
    assert str(IPV6_UNICAST) == "ipv6-unicast"
    assert Family.parse("ipv4-unicast") == IPV4_UNICAST
    assert Family.parse(str(Family(7, 9))) == (7, 9)
    with pytest.raises(ValueError, match="not an address family"):
        Family.parse("ipv5")
