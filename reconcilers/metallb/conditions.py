"""The conditions of MetalLB's objects, for all nodes together. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from reconcilers.frrk8s.conditions import OTHER_NAMESPACE, ClusterOutcome, conditions
from reconcilers.model import Condition, ObjectRef
from reconcilers.sliced_work import Pieces, Slices
from resources.frrk8s.condition_types import ACCEPTED
from resources.metallb.objects import MetalLBObject


def conditions_of(
    rows: Sequence[tuple[ObjectRef, MetalLBObject]],
    namespace: str,
    outcome: ClusterOutcome,
    pieces: Pieces,
) -> Slices[list[Condition]]:
    """Return the conditions of all MetalLB objects; objects of other namespaces have no effect."""
    own = {ref: row.metadata.generation for ref, row in rows if row.metadata.namespace == namespace}
    text = f"only objects of MetalLB in namespace {namespace} are used"
    others = [
        Condition(ref, ACCEPTED, False, OTHER_NAMESPACE, text, row.metadata.generation)
        for ref, row in rows
        if ref not in own
    ]
    return [*others, *(yield from conditions(own, outcome, pieces))]
