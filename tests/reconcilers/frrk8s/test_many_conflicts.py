"""Objects that differ in very many prefixes: some problems and a number, and the cost of a change."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from reconcilers.admission import Request, Reviewer
from reconcilers.frrk8s import claim_table
from reconcilers.frrk8s.claims import MAX_CONFLICTS, differ
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.merge import Merge, Merger
from reconcilers.frrk8s.options import Frrk8sClusterOptions
from reconcilers.frrk8s.unit_parts import Unit
from reconcilers.model import Problem
from reconcilers.sliced_work import Pieces, finish
from tests.reconcilers.frrk8s.agent_in_memory import AgentInMemory
from tests.reconcilers.frrk8s.build import (
    configuration,
    merge,
    neighbor,
    resolve,
    router,
    unit,
)

MANY = 250
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


def preferring(preference: int, count: int = MANY) -> dict[str, Any]:
    """Return a router with many prefixes, of which some have a local preference."""
    prefixes = [f"10.0.{i}.0/24" for i in range(MANY)]
    given = [{"localPref": preference, "prefixes": prefixes[:count]}]
    advertise = {"allowed": {"prefixes": prefixes}, "withLocalPref": given}
    return router(neighbor(toAdvertise=advertise), prefixes=prefixes)


def three() -> list[Unit]:
    """Return objects of which two differ in many prefixes, and one differs from both in one field."""
    return [
        unit("x", preferring(100), created="2026-01-01T00:00:00Z"),
        unit("y", preferring(200), created="2026-01-02T00:00:00Z"),
        unit("z", router(asn=64901), created="2026-01-03T00:00:00Z"),
    ]


def of(problems: tuple[Problem, ...], names: str) -> list[Problem]:
    """Return the problems of objects."""
    return [one for one in problems if " ".join(ref.name for ref in one.objects) == names]


@pytest.mark.parametrize("isolate", [False, True])
def test_of_the_same_objects_some_conflicts_are_reported_and_the_number_of_the_others(
    isolate: bool,
) -> None:
    result = merge(three(), isolate=isolate)
    found = of(result.problems, "x y")
    assert len(found) == MAX_CONFLICTS + 1
    assert all(" differs: 100 in " in one.message for one in found[:-1])
    last = found[-1]
    assert (last.category, last.count) == ("conflict", MANY - MAX_CONFLICTS)
    assert last.message == f"there are {MANY - MAX_CONFLICTS} more conflicts of the same objects"
    assert sorted(result.problems) == list(result.problems)
    # Conflicts of other objects are counted by themselves.
    (other,) = of(result.problems, "x z" if isolate else "x y z")
    assert other.message.startswith("router of VRF default: AS number differs: ")
    assert [one.ref.name for one in result.accepted] == (["x"] if isolate else [])


def test_a_few_conflicts_are_all_reported() -> None:
    units = [unit(name, preferring(i, MAX_CONFLICTS)) for i, name in enumerate("xy")]
    assert [one.count for one in merge(units).problems] == [1] * MAX_CONFLICTS


def test_which_conflicts_are_reported_does_not_depend_on_the_order_of_the_objects() -> None:
    found = {merge(units).problems for units in itertools.permutations(three())}
    assert len(found) == 1


def test_a_change_of_another_object_compares_nothing_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = 0

    def counted(claims: Any) -> bool:  # noqa: ANN401
        nonlocal compared
        compared += 1
        return differ(claims)

    monkeypatch.setattr(claim_table, "differ", counted)
    merger = Merger()

    def merged(units: Sequence[Unit]) -> Merge:
        return finish(merger.merge(units, resolve(), Pieces()))

    x, y, _ = three()
    whole = merged([x, y])
    assert compared == MANY
    other = unit("other", router(neighbor(address="203.0.113.77"), vrf="red"))
    assert merged([other, x, y]).problems == whole.problems
    assert compared == MANY
    assert merged([other, x]).routers is not None
    assert merged([other, x, y]).problems == whole.problems
    repaired = unit("y", preferring(100))
    assert merged([other, x, repaired]).routers is not None


def test_a_change_that_leaves_fewer_conflicts_than_before_is_admitted() -> None:
    agent = AgentInMemory("n1")
    reviewer = Reviewer(
        agent.db, agent.tables, [Frrk8sDialect(agent.tables, Frrk8sClusterOptions())]
    )

    def value(name: str, *routers: dict[str, Any]) -> dict[str, Any]:
        return configuration(name, {"bgp": {"routers": list(routers)}})

    stored, changed = value("y", preferring(200, MANY - 5)), value("y", preferring(200, MANY - 9))
    agent.write([NODE, value("x", preferring(100)), stored])
    version = "frrk8s.metallb.io/v1beta1"

    def review(new: dict[str, Any]) -> bool:
        request = Request("UPDATE", version, "FRRConfiguration", new, stored)
        return reviewer.review(request).allowed

    assert review(changed)
    assert review(value("y", preferring(200, 3)))
    assert review(stored)
    assert not review(value("y", preferring(200, MANY - 4)))
    assert not review(value("y", preferring(200, 3), router(asn=64901, vrf="red", id="x")))
