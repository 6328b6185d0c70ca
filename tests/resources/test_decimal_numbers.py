"""Numbers in texts of objects: no text is an exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from resources.addresses import canonical_prefix
from resources.cilium import communities as of_cilium
from resources.cilium.pools import (
    Block,
    CiliumLoadBalancerIPPool,
    LoadBalancerIPPoolSpec,
    load_balancer_pool_errors,
)
from resources.decimal_numbers import decimal_number
from resources.frrk8s.communities import parse_community
from resources.kubernetes.feed import older
from resources.meta import ObjectMeta
from resources.metallb.ipaddresspool import block
from resources.ovnk.cni import parse_subnets

MANY = "9" * 5000
"""More digits than ``int()`` takes."""


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("179", 179),
        ("00179", 179),
        ("65535", 65535),
        ("65536", None),
        ("", None),
        ("x", None),
        ("-1", None),
        ("+1", None),
        (" 1", None),
        ("1_0", None),
        ("1.0", None),
        ("1e999", None),
        ("NaN", None),
        ("\u0667", None),
        ("²", None),
        ("\ud800", None),
        (MANY, None),
        ("0" * 5000, None),
    ],
    ids=lambda value: ascii(value)[:16],
)
def test_a_number_has_ascii_digits_and_a_limit(text: str, number: int | None) -> None:
    assert decimal_number(text, 65535) == number


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (canonical_prefix, f"10.0.0.0/{MANY}"),
        (canonical_prefix, f"{MANY}/8"),
        (of_cilium.standard, MANY),
        (of_cilium.standard, f"1:{MANY}"),
        (of_cilium.large, f"1:2:{MANY}"),
        (parse_community, f"1:{MANY}"),
        (parse_community, f"large:1:2:{MANY}"),
        (block, f"10.0.0.0/{MANY}"),
        (block, f"{MANY}-10.0.0.1"),
        (lambda text: parse_subnets(text, layer3=True), f"10.0.0.0/16/{MANY}"),
        (lambda text: parse_subnets(text, layer3=True), f"10.0.0.0/{MANY}"),
        (lambda text: parse_subnets(text, layer3=False), f"10.0.0.0/16/{MANY}"),
    ],
    ids=lambda value: value[:16] if isinstance(value, str) else value.__name__,
)
def test_a_number_of_5000_digits_is_the_error_of_a_parser(
    parse: Callable[[str], Any], text: str
) -> None:
    with pytest.raises(ValueError, match=r"'|9") as found:
        parse(text)
    assert "Exceeds the limit" not in str(found.value)
    assert len(str(found.value)) < 300


def test_a_prefix_length_of_5000_digits_is_an_error_of_a_pool() -> None:
    spec = LoadBalancerIPPoolSpec(blocks=(Block(cidr=f"10.0.0.0/{MANY}"),))
    pool = CiliumLoadBalancerIPPool(metadata=ObjectMeta(name="x"), spec=spec)
    [error] = load_balancer_pool_errors(pool)
    assert error.path == "spec.blocks[0]"
    assert error.message.endswith("is not a prefix length")
    assert len(error.message) < 200


def test_versions_of_5000_digits_are_compared() -> None:
    assert older(MANY, f"1{MANY}")
    assert not older(f"1{MANY}", MANY)
    assert older("0009", "10")
