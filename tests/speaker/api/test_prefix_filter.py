"""The prefix filter of ``/v1/routes``: exact for a prefix, longest match for an address."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from speaker.api import RouteView
from speaker.api.prefix_filter import parse_prefix
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, prefix_to_text, prefix_to_wire

LOOPBACK = ip_address("::1")
VIEW = RouteView(
    family=IPV4_UNICAST,
    prefix="",
    next_hop=None,
    as_path="",
    origin="IGP",
    med=None,
    local_preference=None,
    communities=(),
    large_communities=(),
    extended_communities=(),
    peer=None,
    best=True,
    reason="",
)


@pytest.mark.parametrize(
    ("text", "family", "prefix"),
    [
        ("10.1.0.0/16", IPV4_UNICAST, "10.1.0.0/16"),
        ("10.1.2.3/16", IPV4_UNICAST, "10.1.0.0/16"),
        ("fd00:0::/64", IPV6_UNICAST, "fd00::/64"),
        ("0.0.0.0/0", IPV4_UNICAST, "0.0.0.0/0"),
    ],
)
def test_a_prefix_is_one_lookup(text: str, family: object, prefix: str) -> None:
    found = parse_prefix(text)
    assert found.family == family
    assert [prefix_to_text(found.family, nlri) for nlri in found.prefixes] == [prefix]


def test_an_address_is_a_lookup_for_each_length_the_longest_first() -> None:
    four, six = parse_prefix("10.1.2.3"), parse_prefix("fd00::1")
    assert (len(four.prefixes), len(six.prefixes)) == (33, 129)
    texts = [prefix_to_text(four.family, nlri) for nlri in four.prefixes]
    assert texts[:2] + texts[-3:] == [
        "10.1.2.3/32",
        "10.1.2.2/31",
        "0.0.0.0/2",
        "0.0.0.0/1",
        "0.0.0.0/0",
    ]


@pytest.mark.parametrize("text", ["", "ten", "10.0.0.0/33", "10.0.0", "fd00::/129", "10.0.0.1 "])
def test_another_text_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is neither a prefix nor an address"):
        parse_prefix(text)


def test_the_first_prefix_with_routes_matches_with_all_its_paths() -> None:
    views = [
        replace(VIEW, prefix=prefix, peer=peer)
        for prefix, peer in (("10.1.0.0/16", "a"), ("10.1.0.0/16", "b"), ("10.0.0.0/8", "a"))
    ]
    found = parse_prefix("10.1.2.3")
    for slices in ([views], [[], views[:1], views[1:2], views[2:]], [views[:2], views[2:]]):
        assert list(chain.from_iterable(found.first_match(slices))) == views[:2]
    assert list(found.first_match([])) == []


NETWORKS = st.one_of(
    st.builds(
        IPv4Network, st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 32)), st.just(False)
    ),
    st.builds(
        IPv6Network, st.tuples(st.integers(0, 2**128 - 1), st.integers(0, 128)), st.just(False)
    ),
)


@given(st.sets(NETWORKS, max_size=12), st.data())
def test_lookups_give_what_a_scan_of_all_networks_gives(
    networks: set[IPv4Network | IPv6Network], data: st.DataObject
) -> None:
    inside = st.sampled_from(
        [net.network_address for net in sorted(networks, key=str)] or [LOOPBACK]
    )
    address = data.draw(st.one_of(inside, st.integers(0, 2**128 - 1).map(ip_address)))
    containing = [net for net in networks if net.version == address.version and address in net]
    table = {prefix_to_wire(str(net)): net for net in networks}
    family, prefixes = parse_prefix(str(address))
    lookups = (table.get((family, nlri)) for nlri in prefixes)
    longest = max(containing, key=lambda net: net.prefixlen, default=None)
    assert next(filter(None, lookups), None) == longest
