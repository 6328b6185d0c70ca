"""Which CiliumBGPPeeringPolicy a node follows, and the conditions that say so.

Pure. Where several select a node, none is followed, as in Cilium: all sessions of the node end. With
``first_wins`` one is: the one that the node followed before, otherwise the oldest (by
creationTimestamp, then name), and the later ones have the condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reconcilers.model import Condition, ObjectRef, Problem
from resources.cilium import CiliumBGPPeeringPolicy
from resources.cilium.condition_types import CONFLICTING_PEERING_POLICY, NO_MATCHING_NODE
from resources.core import Node

PEERING_POLICY = "CiliumBGPPeeringPolicy"


class Selection(NamedTuple):
    """What follows from all policies and all nodes."""

    owners: dict[str, str]
    """Node to the policy that it follows."""
    claimed: frozenset[str]
    """Nodes that some policy selects, followed or not."""
    at: frozenset[str]
    """Policies that select some node."""
    conditions: list[Condition]
    problems: list[Problem]


def policy_ref(name: str) -> ObjectRef:
    """Name a policy."""
    return ObjectRef(PEERING_POLICY, "", name)


def select(
    policies: Iterable[CiliumBGPPeeringPolicy],
    nodes: Iterable[Node],
    owners: Mapping[str, str],
    *,
    first_wins: bool,
) -> Selection:
    """Find the policy of each node; ``owners`` tells which one it followed in the round before."""
    ordered = sorted(policies, key=_age)
    selected: dict[str, list[str]] = {}
    matching: set[str] = set()
    for node in sorted(nodes, key=lambda node: node.metadata.name):
        names = [
            policy.metadata.name
            for policy in ordered
            if policy.spec.node_selector is None
            or policy.spec.node_selector.matches(node.metadata.labels)
        ]
        matching.update(names)
        if names:
            selected[node.metadata.name] = names
    followed: dict[str, str] = {}
    conflicts: dict[str, dict[str, set[str]]] = {}
    for node_name, names in selected.items():
        if len(names) == 1 or first_wins:
            before = owners.get(node_name, "")
            followed[node_name] = before if before in names else names[0]
        if len(names) > 1:
            owner = followed.get(node_name)
            for name in names:
                if name != owner:
                    rivals = {owner} if owner is not None else set(names) - {name}
                    conflicts.setdefault(name, {})[node_name] = rivals
    conditions: list[Condition] = []
    problems: list[Problem] = []
    for policy in ordered:
        name = policy.metadata.name
        shared = conflicts.get(name, {})
        others = sorted({other for rivals in shared.values() for other in rivals})
        if shared:
            effect = (
                "they follow the other one"
                if first_wins
                else "they follow none, and their sessions end"
            )
            problems.append(
                Problem(
                    (policy_ref(name), *(policy_ref(other) for other in others)),
                    "spec.nodeSelector",
                    f"selects nodes that another policy selects too: {', '.join(sorted(shared))}; "
                    f"{effect}",
                )
            )
        conditions += _conditions(policy, name in matching, others)
    return Selection(followed, frozenset(selected), frozenset(matching), conditions, problems)


def _age(policy: CiliumBGPPeeringPolicy) -> tuple[bool, str, str]:
    # One that says when it was made is older than one that does not.
    created = policy.metadata.creation_timestamp
    return (not created, created, policy.metadata.name)


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
