"""Conditions of the objects that are merged: one for all nodes together. Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from reconcilers.model import Condition, ObjectRef, Problem, ProblemCategory
from reconcilers.sliced_work import Pieces, Slices
from resources.enumeration import MAX_NAMED_OBJECTS, counted, enumerate_objects, joined
from resources.frrk8s.condition_types import (
    ACCEPTED,
    CONFLICTING,
    PARTIALLY_APPLIED,
    SELECTED,
)
from statedb import Table

_REASONS: Final[Sequence[tuple[ProblemCategory, str]]] = (
    ("invalid", "Invalid"),
    ("unresolved", "Unresolved"),
    ("conflict", "Conflict"),
)
"""The problem that is reported of an object with several: the first of them."""
_PARTS: Final[Mapping[str, str]] = {
    "RawConfig": "raw configuration has no effect",
    "EVPN": "EVPN has no effect",
    "KernelRoutes": "accepted routes are not installed in the kernel",
    "LeftOut": "the object is not in effect",
}
OTHER_NAMESPACE: Final = "OtherNamespace"
PIECES_OF_CONDITION: Final = 10
"""Pieces of a slice for one condition."""


class NodesOutcome(msgspec.Struct, frozen=True):
    """The outcome of the objects of nodes with the same objects, own and translated."""

    nodes: tuple[str, ...]
    objects: frozenset[ObjectRef]
    """Objects that concern the nodes."""
    accepted: frozenset[ObjectRef]
    """With ``isolate``: the objects in effect."""
    problems: tuple[Problem, ...]
    partial: tuple[tuple[ObjectRef, str], ...] = ()
    """Objects of which a part has no effect, with the reason."""
    followed: tuple[Table[Any], ...] = ()
    """Further tables that it depends on."""


class ClusterOutcome(msgspec.Struct, frozen=True):
    """The outcome of all objects on all nodes."""

    nodes: tuple[NodesOutcome, ...]
    isolate: bool


class _Findings(msgspec.Struct):
    """The findings about one object."""

    nodes: set[str] = msgspec.field(default_factory=set)
    problems: dict[Problem, set[str]] = msgspec.field(default_factory=dict)
    standing_in_the_way: set[Problem] = msgspec.field(default_factory=set)
    """Without problems of younger objects that ``isolate`` rejects in favour of this one."""
    parts: set[str] = msgspec.field(default_factory=set)


def conditions(
    objects: Mapping[ObjectRef, int],
    outcome: ClusterOutcome,
    pieces: Pieces,
    own_problems: Iterable[Problem] = (),
) -> Slices[list[Condition]]:
    """Return the conditions of FRRConfigurations and translated objects, given with their generation.

    ``own_problems`` concern objects that select no node, as their selector is invalid.
    """
    outcomes = {ref: _Findings() for ref in objects}
    for node in outcome.nodes:
        yield from _take(outcomes, node, pieces, isolate=outcome.isolate)
    for problem in own_problems:
        for ref in problem.objects:
            if ref in outcomes:
                outcomes[ref].problems.setdefault(problem, set())
                outcomes[ref].standing_in_the_way.add(problem)
    reported: list[Condition] = []
    for ref, of_object in sorted(outcomes.items()):
        reported += _of_object(ref, objects[ref], of_object, are_nodes_known=bool(outcome.nodes))
        if pieces.fill_slice(PIECES_OF_CONDITION + len(of_object.problems)):
            yield
    return reported


def _take(
    outcomes: Mapping[ObjectRef, _Findings],
    on_nodes: NodesOutcome,
    pieces: Pieces,
    *,
    isolate: bool,
) -> Slices[None]:
    """Add the outcome of objects on some nodes."""
    for ref in outcomes.keys() & on_nodes.objects:
        outcomes[ref].nodes.update(on_nodes.nodes)
        if isolate and ref not in on_nodes.accepted:
            outcomes[ref].parts.add("LeftOut")
    for ref, reason in on_nodes.partial:
        if ref in outcomes:
            outcomes[ref].parts.add(reason)
    for problem in on_nodes.problems:
        for ref in outcomes.keys() & set(problem.objects):
            outcomes[ref].problems.setdefault(problem, set()).update(on_nodes.nodes)
            if not (isolate and ref in on_nodes.accepted):
                outcomes[ref].standing_in_the_way.add(problem)
        if pieces.fill_slice():
            yield


def other_namespace(ref: ObjectRef, generation: int, namespace: str) -> Condition:
    """Return the condition of an FRRConfiguration in a namespace that is ignored."""
    text = f"only FRRConfigurations in namespace {namespace} are used"
    return Condition(ref, ACCEPTED, False, OTHER_NAMESPACE, text, generation)


def _of_object(
    ref: ObjectRef, generation: int, outcome: _Findings, *, are_nodes_known: bool
) -> Iterator[Condition]:
    reason, problems = "Accepted", list[Problem]()
    for category, word in _REASONS:
        problems = [p for p in sorted(outcome.standing_in_the_way) if p.category == category]
        if problems:
            reason = word
            break
    text = joined(_sentence(problem, ref, outcome.problems[problem]) for problem in problems)
    yield Condition(ref, ACCEPTED, reason == "Accepted", reason, text, generation)
    conflicts = [p for p in sorted(outcome.problems) if p.category == "conflict"]
    if conflicts:
        text = joined(_sentence(problem, ref, outcome.problems[problem]) for problem in conflicts)
        yield Condition(ref, CONFLICTING, True, "Conflict", text, generation)
    parts = [word for word in _PARTS if word in outcome.parts]
    if parts:
        text = "; ".join(_PARTS[word] for word in parts)
        yield Condition(ref, PARTIALLY_APPLIED, True, parts[0], text, generation)
    if are_nodes_known and not outcome.nodes and reason != "Invalid":
        text = "no node has the labels of the node selector"
        yield Condition(ref, SELECTED, False, "NoNode", text, generation)


def _sentence(problem: Problem, ref: ObjectRef, nodes: Iterable[str]) -> str:
    """Return a problem with its field, the other objects and the nodes."""
    names = sorted(nodes)
    parts = [": ".join(part for part in (problem.field, problem.message) if part)]
    others = (other for other in problem.objects if other != ref)
    if not (_names_its_objects(problem) or _are_named(problem, ref)):
        first = islice(others, MAX_NAMED_OBJECTS)
        parts.append(f"with {enumerate_objects(first, len(problem.objects) - 1)}")
    if names:
        more = ", ..." if len(names) > 3 else ""
        parts.append(f"on {counted(len(names), 'node')} ({', '.join(names[:3])}{more})")
    return " ".join(parts)


def _are_named(problem: Problem, ref: ObjectRef) -> bool:
    """True if the message has the names of all other objects."""
    return all(str(other) in problem.message for other in problem.objects if other != ref)


@functools.lru_cache(maxsize=64)
def _names_its_objects(problem: Problem) -> bool:
    """True if the message has the names of all objects; hundreds of them have the same problem."""
    return all(str(ref) in problem.message for ref in problem.objects)
