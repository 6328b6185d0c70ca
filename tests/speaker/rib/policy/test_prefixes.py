"""Prefix lists on wire octets against the same lists on `ipaddress` objects."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.api import PrefixRule
from speaker.nlri import prefix_to_wire
from speaker.rib.policy.prefixes import PrefixList

NETWORKS = st.builds(
    lambda value, length: ipaddress.IPv4Network((value >> (32 - length) << (32 - length), length)),
    st.integers(0, 2**32 - 1) | st.sampled_from([0x0A000000, 0x0A010000, 0x0A010100]),
    st.integers(0, 32),
)
LENGTH = st.integers(0, 32) | st.none()


@given(st.lists(st.tuples(NETWORKS, LENGTH, LENGTH), max_size=6), NETWORKS)
def test_a_list_covers_the_prefixes_of_each_of_its_rules(
    rules: list[tuple[ipaddress.IPv4Network, int | None, int | None]],
    route: ipaddress.IPv4Network,
) -> None:
    usable: list[PrefixRule] = []
    expected = False
    for network, low, high in rules:
        ge = network.prefixlen if low is None else low
        le = (network.prefixlen if low is None else 32) if high is None else high
        rule = PrefixRule(str(network), low, high)
        if not network.prefixlen <= ge <= le:
            with pytest.raises(ValueError, match="not within"):
                PrefixList([rule])
            continue
        usable.append(rule)
        expected |= route.subnet_of(network) and ge <= route.prefixlen <= le
    assert PrefixList(usable).covers(*prefix_to_wire(str(route))) == expected


def test_families_do_not_mix() -> None:
    compiled = PrefixList([PrefixRule("::/0", ge=0)])
    assert compiled.covers(*prefix_to_wire("fd00::/8"))
    assert not compiled.covers(*prefix_to_wire("10.0.0.0/8"))


@pytest.mark.parametrize("prefix", ["10.0.0.1/8", "nonsense", "10.0.0.0/33", "10.0.0.0"])
def test_text_that_is_no_prefix_is_rejected(prefix: str) -> None:
    with pytest.raises(ValueError, match=prefix.split("/")[0]):
        PrefixList([PrefixRule(prefix)])
