"""Selects the CiliumBGPPeeringPolicy of each node, and reports conflicts as conditions.

Pure. If several policies select a node, none applies, as in Cilium: all sessions of the node end. With
``first_wins`` one applies: as before, otherwise the oldest (by creationTimestamp,
then name), and the others get the condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from reconcilers.age import Age, age
from reconcilers.model import Condition, ObjectRef, Problem
from reconcilers.sliced_work import QUICK_PER_PIECE, Pieces, Slices
from resources.cilium import CiliumBGPPeeringPolicy
from resources.cilium.condition_types import CONFLICTING_PEERING_POLICY, NO_MATCHING_NODE
from resources.core import Node
from resources.enumeration import enumerate_some

PEERING_POLICY = "CiliumBGPPeeringPolicy"
PIECES_OF_POLICY: Final = 3
"""Pieces of a slice that the report on one policy is."""
MAX_NAMED: Final = 8
"""Policies and nodes that one message names."""


class PolicySelection(NamedTuple):
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
    """Return the reference of a selected CiliumBGPPeeringPolicy."""
    return ObjectRef(PEERING_POLICY, "", name)


def select(
    policies: Iterable[CiliumBGPPeeringPolicy],
    nodes: Iterable[Node],
    owners: Mapping[str, str],
    *,
    first_wins: bool,
    pieces: Pieces,
) -> Slices[PolicySelection]:
    """Select the CiliumBGPPeeringPolicy of each node; ``owners`` is the result of the last call."""
    ordered = sorted(policies, key=_age)
    selecting = yield from _selecting_policies(ordered, nodes, pieces)
    applied: dict[str, str] = {}
    for node, names in selecting.items():
        if len(names) == 1 or first_wins:
            before = owners.get(node, "")
            applied[node] = before if before in names else names[0]
    matching = frozenset(name for names in selecting.values() for name in names)
    conflicts = _Conflicts(selecting, applied)
    conditions: list[Condition] = []
    problems: list[Problem] = []
    for policy in ordered:
        name = policy.metadata.name
        conflict = conflicts.of(name)
        if conflict is not None:
            problems.append(_conflict_problem(name, conflict, first_wins=first_wins))
        conditions += _conditions(policy, name in matching, conflict)
        if pieces.fill_slice(PIECES_OF_POLICY):
            yield
    return PolicySelection(applied, frozenset(selecting), matching, conditions, problems)


def _selecting_policies(
    ordered: Sequence[CiliumBGPPeeringPolicy], nodes: Iterable[Node], pieces: Pieces
) -> Slices[dict[str, list[str]]]:
    """Return the policies that select each node, from the oldest; nodes without one are omitted."""
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
        if pieces.fill_slice(1 + len(ordered) // QUICK_PER_PIECE):
            yield
    return selecting


class _Conflict(NamedTuple):
    """The nodes that a policy selects and does not get."""

    nodes: str
    """The nodes, as part of a message."""
    others: Sequence[str]
    """The policies with which it conflicts: some, by name."""
    total: int
    """The number of all of them."""

    @property
    def named(self) -> str:
        """The other policies in a message."""
        more = self.total - len(self.others)
        return ", ".join(self.others) + (f" and {more} more" if more else "")


class _Conflicts:
    """The conflicts of all policies; nodes that the same policies select are one of them."""

    def __init__(self, selecting: Mapping[str, list[str]], applied: Mapping[str, str]) -> None:
        nodes: dict[tuple[tuple[str, ...], str | None], list[str]] = {}
        for node, policies in selecting.items():
            if len(policies) > 1:
                nodes.setdefault((tuple(policies), applied.get(node)), []).append(node)
        self._groups = list(nodes.items())
        self._of_policy: dict[str, list[int]] = {}
        """The groups of each policy."""
        for number, ((names, owner), _) in enumerate(self._groups):
            for name in names:
                if name != owner:
                    self._of_policy.setdefault(name, []).append(number)
        self._known: dict[tuple[int, ...], _Conflict] = {}
        """Of the policies of some groups."""

    def of(self, name: str) -> _Conflict | None:
        """Return the conflict of a policy, if it has one."""
        numbers = tuple(self._of_policy.get(name, ()))
        if not numbers:
            return None
        known = self._known.get(numbers)
        if known is None:
            known = self._known[numbers] = self._of_groups(numbers)
        itself = any(self._groups[number][0][1] is None for number in numbers)
        others = [other for other in known.others if other != name][:MAX_NAMED]
        return _Conflict(known.nodes, others, known.total - itself)

    def _of_groups(self, numbers: Iterable[int]) -> _Conflict:
        """Return the conflict of all policies of some groups, with one name more than is shown."""
        rivals: set[str] = set()
        nodes: list[str] = []
        for number in numbers:
            (selecting, owner), of_group = self._groups[number]
            rivals.update(selecting if owner is None else (owner,))
            nodes += of_group
        shown = enumerate_some(sorted(nodes), MAX_NAMED)
        return _Conflict(shown, sorted(rivals)[: MAX_NAMED + 1], len(rivals))


def _conflict_problem(name: str, conflict: _Conflict, *, first_wins: bool) -> Problem:
    effect = (
        "they follow the other policy" if first_wins else "they follow none, and their sessions end"
    )
    more = f" ({conflict.named})" if conflict.total > len(conflict.others) else ""
    return Problem(
        (policy_ref(name), *(policy_ref(other) for other in conflict.others)),
        "spec.nodeSelector",
        f"selects nodes that another policy selects too{more}: {conflict.nodes}; {effect}",
    )


def _age(policy: CiliumBGPPeeringPolicy) -> Age:
    return age(policy.metadata.creation_timestamp, policy_ref(policy.metadata.name))


def _conditions(
    policy: CiliumBGPPeeringPolicy, matches: bool, conflicting: _Conflict | None
) -> list[Condition]:
    ref = policy_ref(policy.metadata.name)
    generation = policy.metadata.generation or None
    conflict = ""
    if conflicting is not None:
        conflict = f"Selects the same node(s) as CiliumBGPPeeringPolicy(s): {conflicting.named}"
    no_node = "No node matches spec.nodeSelector"
    return [
        Condition(
            ref,
            CONFLICTING_PEERING_POLICY,
            conflicting is not None,
            "ConflictingPeeringPolicies",
            conflict,
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
