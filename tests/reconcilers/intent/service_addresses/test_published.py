"""The object in which the operator publishes addresses: short, exact, and for people."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from reconcilers.dialect import ClusterAddresses
from reconcilers.intent.service_addresses.address_set import AddressSet
from reconcilers.intent.service_addresses.published import MAX_OCTETS, decode, encode, octets
from reconcilers.prefixes import host_route
from reconcilers.sliced_work import finish


def test_adjacent_prefixes_are_one_and_host_names_are_none() -> None:
    nodes = frozenset({"192.0.2.0", "192.0.2.1", "192.0.2.2", "192.0.2.3", "node-1", "fd00::1"})
    pods = frozenset({"10.0.0.0/24", "10.0.1.0/24"})
    data = finish(encode(ClusterAddresses(nodes=nodes, pods=pods)))
    assert data == {
        "nodes": "192.0.2.0/30\nfd00::1\n",
        "pods": "10.0.0.0/23\n",
        "peers": "",
        "services": "",
    }


@given(st.sets(st.integers(0, 300), max_size=100))
def test_the_object_has_exactly_the_addresses(numbers: set[int]) -> None:
    addresses = frozenset(f"10.0.{n // 256}.{n % 256}" for n in numbers)
    read = finish(decode(finish(encode(ClusterAddresses(nodes=addresses)))))["nodes"]
    for number in range(300):
        address = f"10.0.{number // 256}.{number % 256}"
        assert read.covers(*host_route(address)) is (address in addresses)


def test_an_unknown_part_and_an_absent_one_are_ignored() -> None:
    found = finish(decode({"nodes": "192.0.2.1", "future": "x"}))
    assert found.pop("nodes") == AddressSet.of(["192.0.2.1"])
    assert not any(found.values())


def test_the_addresses_of_5000_nodes_fit_even_at_random_places() -> None:
    rng = random.Random(7)  # noqa: S311
    nodes = {
        f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}" for _ in range(5000)
    }
    nodes |= {f"2001:db8:{n % 9:x}::{rng.getrandbits(64):x}"[:24] for n in range(5000)}
    pods = {f"100.{64 + n // 256}.{n % 256}.0/24" for n in range(5000)}
    data = finish(encode(ClusterAddresses(nodes=frozenset(nodes), pods=frozenset(pods))))
    assert octets(data) < MAX_OCTETS / 4
