"""The neighbours of an object."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reconcilers.frrk8s.build import neighbor
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
