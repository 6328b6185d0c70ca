"""The policy that applies to a node, and the conditions of the others."""

from __future__ import annotations

import itertools

import pytest

from reconcilers.cilium.v1.in_effect import PolicySelection, select
from reconcilers.sliced_work import Pieces, finish
from resources.cilium import CiliumBGPPeeringPolicy
from resources.cilium.condition_types import CONFLICTING_PEERING_POLICY, NO_MATCHING_NODE
from resources.core import Node
from tests.reconcilers.cilium.v1.build import node, policy

OLD = policy("z-old", selector={"matchLabels": {"rack": "a"}}, created="2023-01-01T00:00:00Z")
NEW = policy("a-new", selector={"matchLabels": {"row": "1"}}, created="2024-01-01T00:00:00Z")
AGELESS = policy("ageless", selector={"matchLabels": {"row": "1"}})
BOTH = node("both", rack="a", row="1")
RACK = node("rack", rack="a")
ROW = node("row", row="1")
NEITHER = node("neither")
NODES = (BOTH, RACK, ROW, NEITHER)


def _select(
    *policies: CiliumBGPPeeringPolicy,
    nodes: tuple[Node, ...] = NODES,
    owners: dict[str, str] | None = None,
    first_wins: bool = False,
) -> PolicySelection:
    return finish(select(policies, nodes, owners or {}, first_wins=first_wins, pieces=Pieces()))


def _true(selection: PolicySelection, kind: str) -> set[str]:
    return {c.object.name for c in selection.conditions if c.type == kind and c.status}


def test_the_only_policy_that_selects_a_node_applies() -> None:
    found = _select(OLD)
    assert found.owners == {"both": "z-old", "rack": "z-old"}
    assert found.claimed == {"both", "rack"}
    assert (found.problems, _true(found, CONFLICTING_PEERING_POLICY)) == ([], set())


def test_no_selector_selects_every_node() -> None:
    assert _select(policy("all")).owners == dict.fromkeys((n.metadata.name for n in NODES), "all")


def test_c72_of_several_policies_for_a_node_none_applies() -> None:
    found = _select(OLD, NEW)
    assert found.owners == {"rack": "z-old", "row": "a-new"}
    assert "both" in found.claimed
    assert _true(found, CONFLICTING_PEERING_POLICY) == {"a-new", "z-old"}
    assert [p.field for p in found.problems] == ["spec.nodeSelector"] * 2
    assert "both" in found.problems[0].message


def test_with_first_wins_the_oldest_policy_applies() -> None:
    found = _select(NEW, OLD, first_wins=True)
    assert found.owners == {"both": "z-old", "rack": "z-old", "row": "a-new"}
    assert _true(found, CONFLICTING_PEERING_POLICY) == {"a-new"}


def test_with_first_wins_a_policy_without_a_creation_timestamp_is_the_oldest() -> None:
    found = _select(NEW, AGELESS, OLD, first_wins=True)
    assert found.owners["both"] == found.owners["row"] == "ageless"
    assert _true(found, CONFLICTING_PEERING_POLICY) == {"a-new", "z-old"}
    messages = {
        c.object.name: c.message for c in found.conditions if c.type == CONFLICTING_PEERING_POLICY
    }
    assert messages["z-old"] == "Selects the same node(s) as CiliumBGPPeeringPolicy(s): ageless"
    assert messages["ageless"] == ""


def test_the_applied_policy_of_a_node_is_kept() -> None:
    found = _select(OLD, NEW, owners={"both": "a-new"}, first_wins=True)
    assert found.owners["both"] == "a-new"
    assert _true(found, CONFLICTING_PEERING_POLICY) == {"z-old"}
    assert _select(OLD, owners={"both": "a-new"}, first_wins=True).owners["both"] == "z-old"


def test_the_order_of_objects_has_no_effect() -> None:
    for first_wins in (False, True):
        answers = [
            _select(*order, first_wins=first_wins)
            for order in itertools.permutations((OLD, NEW, AGELESS))
        ]
        assert all(answer == answers[0] for answer in answers)


def test_every_cluster_config_has_all_conditions() -> None:
    found = _select(OLD, NEW, nodes=(RACK,))
    assert _true(found, NO_MATCHING_NODE) == {"a-new"}
    assert sorted((c.object.name, c.type) for c in found.conditions) == [
        ("a-new", CONFLICTING_PEERING_POLICY),
        ("a-new", NO_MATCHING_NODE),
        ("z-old", CONFLICTING_PEERING_POLICY),
        ("z-old", NO_MATCHING_NODE),
    ]


@pytest.mark.parametrize("first_wins", [False, True])
def test_of_many_policies_a_conflict_names_some_and_the_number(first_wins: bool) -> None:
    policies = [policy(f"p{n:04}", selector={"matchLabels": {"row": "1"}}) for n in range(1000)]
    found = _select(*policies, first_wins=first_wins)
    assert len(found.problems) == 1000 - first_wins
    last = found.problems[-1]
    assert last.objects[0].name == "p0999"
    if first_wins:
        assert [ref.name for ref in last.objects[1:]] == ["p0000"]
        return
    assert [ref.name for ref in last.objects[1:]] == [f"p{n:04}" for n in range(8)]
    assert "p0007 and 991 more): both, row;" in last.message
    assert [ref.name for ref in found.problems[0].objects[1:]] == [f"p{n:04}" for n in range(1, 9)]
    (message,) = {c.message for c in found.conditions if c.object.name == "p0999" and c.status}
    assert message.endswith("p0006, p0007 and 991 more")
    assert max(len(c.message) for c in found.conditions) < 200


def test_a_conflict_on_several_nodes_is_with_the_policies_of_all_of_them() -> None:
    third = policy("third", selector={"matchLabels": {"rack": "a"}})
    found = _select(OLD, NEW, third)
    names = {p.objects[0].name: [ref.name for ref in p.objects[1:]] for p in found.problems}
    assert names == {
        "a-new": ["third", "z-old"],
        "third": ["a-new", "z-old"],
        "z-old": ["a-new", "third"],
    }
