"""Problems of merged neighbours: each names the oldest object that sets the field."""

from __future__ import annotations

from reconcilers.frrk8s.router_rows import NeighborProblem, neighbor_problems
from reconcilers.frrk8s.unit_parts import NeighborKey
from tests.reconcilers.frrk8s.build import PEER, neighbor, router, unit

KEY = NeighborKey("", PEER, is_interface=False)


def test_a_problem_of_a_neighbour_names_the_oldest_object_that_sets_the_field() -> None:
    young = unit("a", router(neighbor(sourceaddress="192.0.2.1")), created="2026-03-01T00:00:00Z")
    old = unit("c", router(neighbor(sourceaddress="192.0.2.1")), created="2026-01-01T00:00:00Z")
    oldest = unit("b", router(neighbor()), created="2025-01-01T00:00:00Z")
    problem = NeighborProblem(KEY, "sourceaddress", "is no address of the node", "unresolved")
    (found,) = neighbor_problems([problem], [young, old, oldest])
    assert found.objects == (old.ref,)
    assert found.field == "spec.bgp.routers[0].neighbors[0].sourceaddress"
