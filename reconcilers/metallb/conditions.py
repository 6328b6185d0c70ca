"""The conditions of MetalLB's objects, for all nodes together. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconcilers.frrk8s.conditions import OTHER_NAMESPACE, ClusterOutcome, conditions
from reconcilers.model import Condition, ObjectRef
from resources.frrk8s.condition_types import ACCEPTED
from resources.metallb.objects import MetalLBObject


def conditions_of(
    rows: Sequence[tuple[ObjectRef, MetalLBObject]], namespace: str, outcome: ClusterOutcome
) -> Iterator[Condition]:
    """Yield the conditions of all objects; those of other namespaces have no effect."""
    own = {ref: row.metadata.generation for ref, row in rows if row.metadata.namespace == namespace}
    for ref, row in rows:
        if ref not in own:
            text = f"only objects of MetalLB in namespace {namespace} are used"
            generation = row.metadata.generation
            yield Condition(ref, ACCEPTED, False, OTHER_NAMESPACE, text, generation)
    yield from conditions(own, outcome)
