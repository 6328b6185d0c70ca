"""Import rules on wire octets against the same rules on `ipaddress` objects."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.api import InvalidConfig, PrefixRule
from speaker.iana import IPV4_UNICAST
from speaker.nlri import prefix_to_wire
from speaker.rib.accept import accepts_nothing, compile_import


def test_all_and_none() -> None:
    assert compile_import("p", "all") is None
    nothing = compile_import("p", "none")
    assert nothing is not None
    assert accepts_nothing(nothing)
    assert not nothing(IPV4_UNICAST, b"\x08\x0a")


NETWORKS = st.builds(
    lambda value, length: ipaddress.IPv4Network((value >> (32 - length) << (32 - length), length)),
    st.integers(0, 2**32 - 1) | st.sampled_from([0x0A000000, 0x0A010000, 0x0A010100]),
    st.integers(0, 32),
)


@given(NETWORKS, NETWORKS, st.integers(0, 32) | st.none(), st.integers(0, 32) | st.none())
def test_a_rule_covers_what_is_within_it_and_has_a_length_in_range(
    rule: ipaddress.IPv4Network,
    route: ipaddress.IPv4Network,
    low: int | None,
    high: int | None,
) -> None:
    ge = low if low is not None else rule.prefixlen
    longest = rule.prefixlen if low is None else 32
    le = high if high is not None else longest
    value = (PrefixRule(str(rule), ge=low, le=high),)
    if not rule.prefixlen <= ge <= le:
        with pytest.raises(InvalidConfig):
            compile_import("p", value)
        return
    accept = compile_import("p", value)
    assert accept is not None
    family, wire = prefix_to_wire(str(route))
    assert accept(family, wire) == (route.subnet_of(rule) and ge <= route.prefixlen <= le)


def test_families_do_not_mix() -> None:
    accept = compile_import("p", (PrefixRule("::/0", ge=0),))
    assert accept is not None
    assert accept(*prefix_to_wire("fd00::/8"))
    assert not accept(*prefix_to_wire("10.0.0.0/8"))


@pytest.mark.parametrize("prefix", ["10.0.0.1/8", "nonsense", "10.0.0.0/33"])
def test_a_rule_that_is_no_prefix_is_refused_with_the_peers_name(prefix: str) -> None:
    with pytest.raises(InvalidConfig, match="peer 'p': import"):
        compile_import("p", (PrefixRule(prefix),))
