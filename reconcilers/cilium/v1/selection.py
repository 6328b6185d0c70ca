"""Selects the CiliumBGPPeeringPolicy of each node, and reports conflicts as conditions.

Pure. If several policies select a node, none applies, as in Cilium: all sessions of the node end. With
``first_wins`` one applies: the one that applied before, otherwise the oldest (by creationTimestamp,
then name), and the others get the condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from reconcilers.age import Age, age
from reconcilers.model import Condition, ObjectRef, Problem
from resources.cilium import CiliumBGPPeeringPolicy
from resources.cilium.condition_types import CONFLICTING_PEERING_POLICY, NO_MATCHING_NODE
from resources.core import Node

PEERING_POLICY = "CiliumBGPPeeringPolicy"


class Selection(NamedTuple):
    """The result for all policies and nodes."""

    owners: dict[str, str]
    """The policy of each node that has one."""
    claimed: frozenset[str]
    """Nodes that some policy selects, whether it applies or not."""
    matching: frozenset[str]
    """Policies that select some node."""
    conditions: list[Condition]
    problems: list[Problem]


def policy_ref(name: str) -> ObjectRef:
    """Return the reference of a policy."""
    return ObjectRef(PEERING_POLICY, "", name)


def select(
    policies: Iterable[CiliumBGPPeeringPolicy],
    nodes: Iterable[Node],
    owners: Mapping[str, str],
    *,
    first_wins: bool,
) -> Selection:
    """Select the policy of each node; ``owners`` is the result of the last call."""
    ordered = sorted(policies, key=_age)
    selecting = _selecting_policies(ordered, nodes)
    applied: dict[str, str] = {}
    for node, names in selecting.items():
        if len(names) == 1 or first_wins:
            before = owners.get(node, "")
            applied[node] = before if before in names else names[0]
    matching = frozenset(name for names in selecting.values() for name in names)
    conditions: list[Condition] = []
    problems: list[Problem] = []
    for policy in ordered:
        name = policy.metadata.name
        conflicts = _conflicts(name, selecting, applied)
        others = sorted({other for rivals in conflicts.values() for other in rivals})
        if conflicts:
            problems.append(_conflict_problem(name, others, conflicts, first_wins=first_wins))
        conditions += _conditions(policy, name in matching, others)
    return Selection(applied, frozenset(selecting), matching, conditions, problems)


def _selecting_policies(
    ordered: Sequence[CiliumBGPPeeringPolicy], nodes: Iterable[Node]
) -> dict[str, list[str]]:
    """Return the policies that select each node, from the oldest; nodes without one are left out."""
    selecting: dict[str, list[str]] = {}
    for node in sorted(nodes, key=lambda node: node.metadata.name):
        names = [
            policy.metadata.name
            for policy in ordered
            if policy.spec.node_selector is None
            or policy.spec.node_selector.matches(node.metadata.labels)
        ]
        if names:
            selecting[node.metadata.name] = names
    return selecting


def _conflicts(
    name: str, selecting: Mapping[str, list[str]], applied: Mapping[str, str]
) -> dict[str, set[str]]:
    """Return the nodes that a policy selects and does not get, with the policies it conflicts with."""
    conflicts: dict[str, set[str]] = {}
    for node, names in selecting.items():
        owner = applied.get(node)
        if name in names and len(names) > 1 and name != owner:
            conflicts[node] = {owner} if owner is not None else set(names) - {name}
    return conflicts


def _conflict_problem(
    name: str, others: Sequence[str], conflicts: Iterable[str], *, first_wins: bool
) -> Problem:
    effect = (
        "they follow the other one" if first_wins else "they follow none, and their sessions end"
    )
    return Problem(
        (policy_ref(name), *(policy_ref(other) for other in others)),
        "spec.nodeSelector",
        f"selects nodes that another policy selects too: {', '.join(sorted(conflicts))}; {effect}",
    )


def _age(policy: CiliumBGPPeeringPolicy) -> Age:
    return age(policy.metadata.creation_timestamp, policy_ref(policy.metadata.name))


def _conditions(
    policy: CiliumBGPPeeringPolicy, matches: bool, others: list[str]
) -> list[Condition]:
    ref = policy_ref(policy.metadata.name)
    generation = policy.metadata.generation or None
    conflict = f"Selects the same node(s) as CiliumBGPPeeringPolicy(s): {', '.join(others)}"
    no_node = "No node matches spec.nodeSelector"
    return [
        Condition(
            ref,
            CONFLICTING_PEERING_POLICY,
            bool(others),
            "ConflictingPeeringPolicies",
            conflict if others else "",
            generation,
        ),
        Condition(
            ref,
            NO_MATCHING_NODE,
            not matches,
            "NoMatchingNode",
            "" if matches else no_node,
            generation,
        ),
    ]
