"""The parts of the CustomResourceDefinitions of FRR-k8s's kinds that are not in their row types.

Names are those of FRR-k8s. Its own definition of FRRConfiguration has no conditions: an API server
with it drops those that are written.
"""

from __future__ import annotations

from resources.crds.schema_markers import Column, Definition
from resources.metav1 import ConditionsStatus


def _condition(name: str, kind: str, description: str) -> Column:
    path = f'.status.conditions[?(@.type=="{kind}")].status'
    return Column(name, path, description=description)


FRR_CONFIGURATION = Definition(
    "FRRConfiguration contributes to the BGP routers of the nodes that it selects. Those of one node "
    "are merged; where two contradict each other, both are named.",
    columns=(
        _condition("Accepted", "Accepted", "Whether it is used as it is."),
        _condition("Conflicting", "Conflicting", "Whether it contradicts another object."),
        _condition("Partially", "PartiallyApplied", "Whether a part of it has no effect."),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    status=ConditionsStatus,
)
