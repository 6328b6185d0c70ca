"""The neighbours of an object."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.model import ObjectRef, PrefixRule
from tests.reconcilers.frrk8s.build import NAMESPACE, neighbor
from tests.reconcilers.frrk8s.one_object import broken, of_neighbor, of_router

ALL = {"toAdvertise": {"allowed": {"mode": "all"}}}
PREFIX = "198.18.1.0/24"


def test_neighbors_with_equal_routes_share_one_value() -> None:
    named = {"toAdvertise": {"allowed": {"mode": "filtered", "prefixes": [PREFIX]}}}
    ends: list[tuple[str, dict[str, Any]]] = [
        ("203.0.113.9", ALL),
        ("203.0.113.10", ALL),
        ("203.0.113.11", named),
    ]
    found = of_router(*(neighbor(address=end, **more) for end, more in ends), prefixes=[PREFIX])
    first, second, third = (part.routes for part in found.routers[0].neighbors)
    assert first is second
    assert first is third


def test_a_neighbor_is_an_address_or_an_interface() -> None:
    assert of_neighbor(address="2001:DB8::1").key.end == "2001:db8::1"
    assert of_neighbor(address="", interface="eth0").key.is_interface


@pytest.mark.parametrize("more", [{"interface": "eth0"}, {"address": ""}, {"address": "x"}])
def test_a_neighbor_has_exactly_one_end(more: dict[str, str]) -> None:
    assert [field for field, _ in broken(**more)] == ["address"]


def test_families_are_unicast_unless_they_are_named() -> None:
    assert of_neighbor().settings.families == {"unicast"}
    assert of_neighbor(addressFamilies=["evpn"]).settings.families == {"evpn"}


REF = ObjectRef("FRRConfiguration", NAMESPACE, "a")


def receive(*prefixes: object, **more: object) -> dict[str, object]:
    return {"toReceive": {"allowed": {"prefixes": list(prefixes), **more}}}


def test_nothing_is_accepted_by_default_and_everything_by_the_mode_all() -> None:
    assert of_neighbor().settings.accept == frozenset()
    assert of_neighbor(**receive(mode="all")).settings.accept is None


def test_a_selector_is_a_rule_with_its_object() -> None:
    accept = of_neighbor(**receive({"prefix": "10.0.0.0/8", "ge": 16, "le": 24})).settings.accept
    assert accept == frozenset((PrefixRule("10.0.0.0/8", 16, 24, REF),))


@pytest.mark.parametrize(
    ("field", "selector"),
    [
        ("prefix", {"prefix": "10.0.0.0"}),
        ("ge", {"prefix": "10.0.0.0/8", "ge": 7}),
        ("le", {"prefix": "10.0.0.0/8", "le": 33}),
        ("ge", {"prefix": "10.0.0.0/8", "ge": 24, "le": 16}),
    ],
)
def test_selectors_that_cannot_be(field: str, selector: dict[str, object]) -> None:
    errors = broken(**receive({"prefix": "192.0.2.0/24"}, selector))
    assert [path for path, _ in errors] == [f"toReceive.allowed.prefixes[1].{field}"]


def test_lengths_of_ipv6_go_to_128() -> None:
    accept = of_neighbor(**receive({"prefix": "2001:db8::/32", "le": 128})).settings.accept
    assert accept == frozenset((PrefixRule("2001:db8::/32", None, 128, REF),))
