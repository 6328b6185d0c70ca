"""The VRFs of an object."""

from __future__ import annotations

from typing import Any

from reconcilers.frrk8s.one_object import imported_elsewhere, routed_vrfs
from reconcilers.frrk8s.values import prefix
from tests.reconcilers.frrk8s.build import neighbor, router, unit
from tests.reconcilers.frrk8s.one_object import compiled

RED, BLUE = "10.1.0.0/16", "10.2.0.0/16"
ALL: dict[str, Any] = {"toAdvertise": {"allowed": {"mode": "all"}}}
IMPORT_BLUE: dict[str, Any] = {"prefixes": [RED], "imports": [{"vrf": "blue"}]}


def test_the_vrfs_of_an_object_are_those_of_its_routers() -> None:
    one = unit("a", router(vrf="red", prefixes=[RED, "no prefix"]), router(prefixes=[BLUE]))
    assert routed_vrfs(one) == {"red": {prefix(RED)}, "": {prefix(BLUE)}}


def test_an_object_depends_on_the_vrfs_that_it_imports_and_has_no_router_of() -> None:
    assert imported_elsewhere(unit("a", router(**IMPORT_BLUE))) == {"blue"}
    assert imported_elsewhere(unit("a", router(**IMPORT_BLUE), router(vrf="blue"))) == set()


def test_of_an_imported_vrf_the_objects_own_router_is_all_that_counts() -> None:
    elsewhere = {"blue": frozenset({prefix("10.9.0.0/16")})}
    importing = router(neighbor(**ALL), **IMPORT_BLUE)
    (found,) = compiled(unit("a", importing), elsewhere).routers
    assert found.neighbors[0].routes.keys() == {prefix(RED), prefix("10.9.0.0/16")}
    own = router(vrf="blue", prefixes=[BLUE])
    found, _ = compiled(unit("a", importing, own), elsewhere).routers
    assert found.neighbors[0].routes.keys() == {prefix(RED), prefix(BLUE)}


def test_a_vrf_that_no_object_has_is_missing_and_no_error() -> None:
    found = compiled(unit("a", router(**IMPORT_BLUE)))
    assert [one.path for one in found.missing] == ["spec.bgp.routers[0].imports[0].vrf"]
    assert found.errors == ()
