"""Prefix lists on wire octets against the same lists on `ipaddress` objects."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.api import PrefixRule
from speaker.nlri import IPV4_UNICAST, prefix_to_text, prefix_to_wire
from speaker.rib.policy.prefixes import PrefixList, prefix_list

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
    compiled = PrefixList(usable)
    family, nlri = prefix_to_wire(str(route))
    assert compiled.covers(family, nlri) == expected
    match = compiled.first_match(family, nlri)
    assert (match is not None) == expected
    if match is not None:
        before = usable[: usable.index(match)]
        assert PrefixList([match]).covers(family, nlri)
        assert not PrefixList(before).covers(family, nlri)


@pytest.mark.parametrize(
    ("rules", "members"),
    [
        ([PrefixRule("10.0.0.0/8")], ["10.0.0.0/8"]),
        ([PrefixRule("10.0.0.0/8", le=9)], ["10.0.0.0/8", "10.0.0.0/9", "10.128.0.0/9"]),
        ([PrefixRule("10.0.0.0/30", ge=32)], [f"10.0.0.{n}/32" for n in range(4)]),
        ([PrefixRule("0.0.0.0/0", le=1)], ["0.0.0.0/0", "0.0.0.0/1", "128.0.0.0/1"]),
        ([PrefixRule("fd00::/8")], []),
    ],
)
def test_the_prefixes_of_a_list_are_counted_and_listed(
    rules: list[PrefixRule], members: list[str]
) -> None:
    compiled = PrefixList(rules)
    found = [prefix_to_text(IPV4_UNICAST, nlri) for nlri in compiled.members(IPV4_UNICAST)]
    assert sorted(found) == sorted(members)
    assert compiled.size(IPV4_UNICAST) == len(members)


def test_families_do_not_mix() -> None:
    compiled = PrefixList([PrefixRule("::/0", ge=0)])
    assert compiled.covers(*prefix_to_wire("fd00::/8"))
    assert not compiled.covers(*prefix_to_wire("10.0.0.0/8"))


@pytest.mark.parametrize("prefix", ["10.0.0.1/8", "nonsense", "10.0.0.0/33", "10.0.0.0"])
def test_text_that_is_no_prefix_is_rejected(prefix: str) -> None:
    with pytest.raises(ValueError, match=prefix.split("/")[0]):
        PrefixList([PrefixRule(prefix)])


def test_equal_lists_are_compiled_once() -> None:
    rules = (PrefixRule("10.0.0.0/8"), PrefixRule("172.16.0.0/12", le=24))
    compiled = prefix_list(rules)
    assert prefix_list(rules) is compiled
    assert prefix_list((*rules,)) is compiled
    assert prefix_list(rules[:1]) is not compiled


def test_a_list_with_the_identity_of_a_former_one_is_another_list() -> None:
    """Lists that are not used any more are released, and their identity is given again."""
    for number in range(600):
        (rule,) = prefix_list(
            (PrefixRule(f"10.{number % 256}.0.0/16", le=17 + number // 256),)
        )._rules
        assert rule.prefix == f"10.{number % 256}.0.0/16"
