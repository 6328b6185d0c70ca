"""The routers and BFD profiles of an object."""

from __future__ import annotations

from typing import Any

from reconcilers.frrk8s.field_values import prefix
from reconcilers.frrk8s.one_object import imported_elsewhere, routed_vrfs
from tests.reconcilers.frrk8s.build import neighbor, router, unit
from tests.reconcilers.frrk8s.one_object import compiled, of_router


def test_every_broken_rule_is_reported_and_nothing_is_compiled() -> None:
    found = of_router(neighbor(asn=0), asn=0, prefixes=["10.0.0.0/33", "x"])
    assert [error.path.removeprefix("spec.bgp.routers[0].") for error in found.errors] == [
        "asn",
        "prefixes[0]",
        "prefixes[1]",
        "neighbors[0].asn",
    ]
    assert found.routers == ()


def test_a_vrf_cannot_import_itself() -> None:
    found = of_router(vrf="red", imports=[{"vrf": "red"}])
    assert [error.path for error in found.errors] == ["spec.bgp.routers[0].imports[0].vrf"]


def test_a_profile_is_there_once_and_a_neighbor_names_one_of_its_object() -> None:
    profiles = [{"name": "quick"}, {"name": "quick"}]
    one = router(neighbor(bfdProfile="quick"), neighbor(address="203.0.113.10", bfdProfile="no"))
    found = compiled(unit("a", one, bfdProfiles=profiles))
    assert [error.path.removeprefix("spec.bgp.") for error in found.errors] == [
        "bfdProfiles[1].name",
        "routers[0].neighbors[1].bfdProfile",
    ]


def test_what_has_no_effect_has_a_reason_and_does_not_stop_the_object() -> None:
    one = router(
        neighbor(bfdProfile="quick", addressFamilies=["unicast", "evpn"]),
        evpn={"advertiseVNIs": "All"},
    )
    found = compiled(unit("a", one, bfdProfiles=[{"name": "quick"}]))
    assert [reason for reason, _ in found.unsupported] == ["EVPN", "EVPN"]
    assert len(found.routers) == 1


def test_accepted_routes_that_the_kernel_does_not_get_are_one_finding_with_their_neighbors() -> (
    None
):
    ends = [f"203.0.113.{number}" for number in (9, 10, 11)]
    everything = {"allowed": {"mode": "all"}}
    some = {"allowed": {"prefixes": [{"prefix": "10.0.0.0/8"}]}}
    accepting = [
        neighbor(address=end, toReceive=given)
        for end, given in zip(ends, (None, everything, some), strict=True)
    ]
    del accepting[0]["toReceive"]
    found = of_router(*accepting)
    ((reason, finding),) = found.unsupported
    assert reason == "KernelRoutes"
    assert finding.path == "spec.bgp.routers[0].neighbors[1].toReceive.allowed"
    assert finding.message == (
        "neighbor 203.0.113.10 and 1 more neighbor: accepted routes are not installed in the kernel"
    )
    assert len(found.routers) == 1
    assert of_router(accepting[0]).unsupported == ()


RED, BLUE = "10.1.0.0/16", "10.2.0.0/16"
ALL: dict[str, Any] = {"toAdvertise": {"allowed": {"mode": "all"}}}
IMPORT_BLUE: dict[str, Any] = {"prefixes": [RED], "imports": [{"vrf": "blue"}]}


def test_an_object_has_the_vrfs_of_its_routers() -> None:
    one = unit("a", router(vrf="red", prefixes=[RED, "no prefix"]), router(prefixes=[BLUE]))
    assert routed_vrfs(one) == {"red": {prefix(RED)}, "": {prefix(BLUE)}}


def test_an_object_depends_on_the_vrfs_that_it_imports_and_has_no_router_of() -> None:
    assert imported_elsewhere(unit("a", router(**IMPORT_BLUE))) == {"blue"}
    assert imported_elsewhere(unit("a", router(**IMPORT_BLUE), router(vrf="blue"))) == set()


def test_of_an_imported_vrf_only_the_objects_own_router_is_used() -> None:
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
