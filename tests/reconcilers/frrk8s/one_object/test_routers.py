"""The routers and BFD profiles of an object."""

from __future__ import annotations

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
    assert [reason for reason, _ in found.unsupported] == ["EVPN", "BFD", "EVPN"]
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
