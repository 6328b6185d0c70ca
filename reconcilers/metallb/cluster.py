"""The conditions of MetalLB's objects, for all nodes together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from reconcilers.dialect import Fed
from reconcilers.frrk8s.conditions import OTHER_NAMESPACE, NodesMerge, conditions
from reconcilers.frrk8s.merge import Merge
from reconcilers.frrk8s.unit import Unit
from reconcilers.metallb.node import NodeObjects
from reconcilers.model import Condition, ObjectRef
from resources.frrk8s.condition_types import ACCEPTED
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.metallb.objects import MetalLBObject


def nodes_merge(
    names: Iterable[str], found: NodeObjects, given: Iterable[Fed], merge: Merge | None
) -> NodesMerge:
    """Return the merge of nodes with the same objects; ``merge`` is None where they are wrong alone."""
    problems = [one.problem for one in found.findings]
    fed = {one.origin for one in given}
    merged = set[ObjectRef]()
    if merge is not None:
        problems += merge.problems
        merged = {unit.ref for unit in merge.accepted}
    taken = {ref for ref, _ in found.objects.refs()} if found.usable else set[ObjectRef]()
    taken -= fed - merged
    refs = (*(ref for ref, _ in found.objects.refs()), *found.left_out)
    partial = () if merge is None else merge.partial
    accepted = tuple(
        Unit(ref, FRRConfiguration(metadata=row.metadata))
        for ref, row in found.objects.refs()
        if ref in taken
    )
    routers = None if merge is None else merge.routers
    return NodesMerge(
        tuple(sorted(names)), refs, Merge(routers, tuple(problems), accepted, partial)
    )


def conditions_of(
    rows: Sequence[tuple[ObjectRef, MetalLBObject]],
    namespace: str,
    merges: Iterable[NodesMerge],
    isolate: bool,
) -> Iterator[Condition]:
    """Yield the conditions of all objects; those of other namespaces do not count."""
    own = {ref: row.metadata.generation for ref, row in rows if row.metadata.namespace == namespace}
    for ref, row in rows:
        if ref not in own:
            text = f"only objects of MetalLB in namespace {namespace} count"
            generation = row.metadata.generation
            yield Condition(ref, ACCEPTED, False, OTHER_NAMESPACE, text, generation)
    yield from conditions(own, merges, (), isolate=isolate)
