"""Sets of addresses as ranges: exact, short, and with both families apart."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.intent.service_addresses.address_set import SLICE_TEXTS, AddressSet
from reconcilers.prefixes import host_route

PREFIXES = st.builds(
    lambda value, length: str(ipaddress.ip_network((value >> 8 << 8, length), strict=False)),
    st.integers(0x0A000000, 0x0A000FFF),
    st.integers(20, 32),
)


def covers(found: AddressSet, address: str) -> bool:
    return found.covers(*host_route(address))


@given(st.lists(PREFIXES, max_size=8), st.integers(0x0A000000 - 2, 0x0A001001))
def test_a_set_covers_what_one_of_its_prefixes_covers(prefixes: list[str], value: int) -> None:
    address = ipaddress.IPv4Address(value)
    found = AddressSet.of(prefixes)
    assert covers(found, str(address)) is any(
        address in ipaddress.ip_network(prefix) for prefix in prefixes
    )
    assert AddressSet.of(found.texts()) == found


@given(st.lists(PREFIXES, max_size=5), st.lists(PREFIXES, max_size=5))
def test_a_union_is_that_of_the_texts(first: list[str], second: list[str]) -> None:
    assert AddressSet.of(first).union(AddressSet.of(second)) == AddressSet.of([*first, *second])


@given(
    st.lists(PREFIXES, max_size=5),
    st.lists(PREFIXES, max_size=5),
    st.integers(0x0A000000, 0x0A000FFF),
)
def test_a_difference_has_every_address_that_one_of_two_sets_has(
    first: list[str], second: list[str], value: int
) -> None:
    one, other = AddressSet.of(first), AddressSet.of(second)
    address = str(ipaddress.IPv4Address(value))
    if covers(one, address) != covers(other, address):
        assert covers(one.difference(other), address)
    assert not one.difference(one)


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        (["10.0.0.0", "10.0.0.1", "10.0.0.2"], ["10.0.0.0-10.0.0.2"]),
        (["10.0.1.0/24", "10.0.0.0/24"], ["10.0.0.0/23"]),
        (["10.0.0.7", "fd00::1", "10.0.0.7"], ["10.0.0.7", "fd00::1"]),
        (["::/0", "0.0.0.0/0"], ["0.0.0.0/0", "::/0"]),
        (["node-1", "fe80::1%eth0", "10.0.0.0/x", ""], []),
        (["10.0.0.0/-5", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0.0/", "fd00::/129"], []),
        (["10.0.0.5-10.0.0.2", "10.0.0.1-", "10.0.0.1-fd00::1"], []),
        (["010.000.001.007", "10.0.02.0/24"], ["10.0.1.7", "10.0.2.0/24"]),
        (["10.0.1.7/24", "fd00::7/64"], ["10.0.1.0/24", "fd00::/64"]),
    ],
)
def test_the_text_is_short_and_has_what_is_readable(given: list[str], texts: list[str]) -> None:
    assert list(AddressSet.of(given).texts()) == texts


@pytest.mark.parametrize(
    "text",
    ["10.0.0.0/" + "9" * 5000, "10.0.0.0/x", "fe80::1%eth0"],
    ids=["many", "x", "zone"],
)
def test_a_text_that_is_no_prefix_adds_nothing(text: str) -> None:
    assert list(AddressSet.of([text, "10.0.0.7"]).texts()) == ["10.0.0.7"]


def test_an_ipv4_address_is_no_ipv6_address() -> None:
    assert not covers(AddressSet.of(["::/0"]), "10.0.0.1")
    assert not covers(AddressSet.of(["0.0.0.0/0"]), "::1")


def test_many_texts_are_read_in_slices() -> None:
    texts = [f"10.{n >> 8}.{n & 255}.1" for n in range(5 * SLICE_TEXTS)]
    slices = sum(1 for _ in AddressSet.gather(texts))
    assert slices == 5
