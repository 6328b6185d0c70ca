"""Patterns let pass what the agent's own checks let pass, and nothing else.

The formats of an API server are not known here; `test_apiserver` tries them on a real one. Go's
expressions and Python's agree on what is used; ``fullmatch`` stands for Go's ``$``, which knows no
line ends.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.addresses import canonical_address, router_id_errors
from resources.cilium import communities
from resources.cilium.peeringpolicy import host_address
from resources.crds import patterns
from resources.crds.schema_markers import SchemaPart


def _matches(part: SchemaPart, text: str) -> bool:
    """Apply a pattern, and the pattern of a ``not``."""
    pattern, unwanted = part.get("pattern"), part.get("not")
    if isinstance(pattern, str) and not re.fullmatch(pattern, text):
        return False
    if isinstance(unwanted, dict):
        return not re.search(unwanted["pattern"], text)
    return True


def _reads(text: str, *, zone: bool = False) -> bool:
    with contextlib.suppress(ValueError):
        canonical_address(text, zone=zone)
        return True
    return False


@pytest.mark.parametrize("limit", [0, 1, 9, 10, 99, 100, 255, 1000, 4095])
def test_numbers_up_to_a_limit_and_no_others(limit: int) -> None:
    pattern = re.compile(patterns.up_to(limit))
    assert [n for n in range(limit * 2 + 200) if pattern.fullmatch(str(n))] == list(
        range(limit + 1)
    )
    assert not any(pattern.fullmatch(text) for text in ("", "00", "01", "-1", "1 ", "٣"))


@given(st.integers(min_value=0, max_value=1 << 34))
def test_numbers_of_32_bits(number: int) -> None:
    assert bool(re.fullmatch(patterns.up_to(4294967295), str(number))) == (number < 1 << 32)


_NUMBERS = st.one_of(
    st.integers(min_value=0, max_value=1 << 33).map(str),
    st.sampled_from(["", "0", "00", "01", "65535", "65536", "4294967295", "4294967296", "-1", "x"]),
)


@given(st.lists(_NUMBERS, min_size=1, max_size=4).map(":".join))
def test_the_community_patterns_accept_what_the_agent_accepts(text: str) -> None:
    for part, parse in (
        (patterns.STANDARD_COMMUNITY, communities.standard),
        (patterns.LARGE_COMMUNITY, communities.large),
    ):
        good = True
        try:
            parse(text)
        except ValueError:
            good = False
        assert _matches(part, text) == good


@given(st.lists(st.sampled_from(["0", "1", "00", "09", "255", "256", ""]), max_size=5))
def test_the_router_id_pattern_accepts_what_the_agent_accepts(parts: list[str]) -> None:
    text = ".".join(parts)
    assert _matches(patterns.ROUTER_ID, text) == (not list(router_id_errors(text, "")))


_GROUPS = st.sampled_from(["", "0", "0000", "1", "ffff", "FFFF", "fe80", "febf", "fec0", "a1"])
_TAILS = st.sampled_from(["", "1.2.3.4", "0.0.0.0", "01.2.3.4", "1.2.3", "1.2.3.04"])
_LOOSE = st.tuples(st.lists(_GROUPS, max_size=9).map(":".join), _TAILS).map(
    lambda parts: ":".join(part for part in parts if part)
)
_ADDRESSES = st.one_of(
    st.ip_addresses(v=6),
    st.integers(min_value=0, max_value=(1 << 32) - 1).map(lambda n: (0xFFFF << 32) + n),
    st.integers(min_value=0, max_value=(1 << 64) - 1).map(lambda n: (0xFE80 << 112) + n),
).map(lambda made: ipaddress.IPv6Address(int(made)))
_TEXTS = st.one_of(_LOOSE, _ADDRESSES.map(str), _ADDRESSES.map(lambda made: made.exploded))
"""Addresses, what looks like some, and odd spellings."""


@given(_TEXTS)
def test_the_exclusion_matches_addresses_that_only_go_accepts(text: str) -> None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return
    mapped = isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None
    assert _matches({"not": patterns.ADDRESS["not"]}, text) == (not mapped)


@pytest.mark.parametrize("text", ["192.0.2.01", "00.0.2.1", "::01.2.3.4", "00001::", "::fffff"])
def test_the_exclusion_has_what_go_accepts_and_the_agent_rejects(text: str) -> None:
    assert not _matches({"not": patterns.ADDRESS["not"]}, text)


@given(_TEXTS, st.sampled_from(["/32", "/128", "", "/0", "/33", "/x"]))
def test_the_host_prefix_pattern_accepts_what_the_agent_accepts(text: str, length: str) -> None:
    try:
        ipaddress.ip_interface(text + length)
    except ValueError:
        return
    try:
        host_address(text + length)
        good = True
    except ValueError:
        good = False
    assert _matches(patterns.HOST_PREFIX, text + length) == (good and length != "")


@given(_TEXTS, st.sampled_from(["eth0", "2", "a" * 15, "a" * 16, "", "a b", "a/b", "a%b", "a:b"]))
def test_the_zone_pattern_accepts_what_the_agent_accepts(text: str, zone: str) -> None:
    (link_local,) = (
        option["pattern"]
        for option in patterns.PEER_ADDRESS["anyOf"]  # type: ignore[attr-defined]  # a list
        if "pattern" in option
    )
    zoned = f"{text}%{zone}"
    assert bool(re.fullmatch(link_local, zoned)) == _reads(zoned, zone=True)
