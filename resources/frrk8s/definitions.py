"""The parts of the CustomResourceDefinitions of FRR-k8s's kinds that are not in their row types.

Names are from FRR-k8s. Its own definition of FRRConfiguration has no conditions: an API server
with it drops conditions that are written.
"""

from __future__ import annotations

from resources.crds.schema_markers import Column, Definition
from resources.frrk8s.status import BGPSessionStateStatus, FRRNodeStateStatus
from resources.metav1 import ConditionsStatus


def _condition(name: str, kind: str, description: str) -> Column:
    path = f'.status.conditions[?(@.type=="{kind}")].status'
    return Column(name, path, description=description)


FRR_CONFIGURATION = Definition(
    "FRRConfiguration contributes to the BGP routers of the nodes that it selects. The objects of a "
    "node are merged; where two contradict each other, both are named.",
    columns=(
        _condition("Accepted", "Accepted", "Whether it is used as it is."),
        _condition("Conflicting", "Conflicting", "Whether it contradicts another object."),
        _condition("Partially", "PartiallyApplied", "Whether a part of it has no effect."),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    status=ConditionsStatus,
)
FRRK8S_CONFIGURATION = Definition(
    "FRRK8sConfiguration has settings of the programs; only the object named config is used.",
    columns=(
        Column("Log Level", ".spec.logLevel", description="The least level that is logged."),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
)
FRR_NODE_STATE = Definition(
    "FRRNodeState has the configuration of one node as it is desired and in force, for people.",
    columns=(
        Column("Conversion", ".status.lastConversionResult", priority=1),
        Column("Reload", ".status.lastReloadResult", priority=1),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    status=FRRNodeStateStatus,
)
BGP_SESSION_STATE = Definition(
    "BGPSessionState has the state of one session of one node.",
    columns=(
        Column("Node", ".status.node"),
        Column("Peer", ".status.peer"),
        Column("VRF", ".status.vrf"),
        Column("BGP", ".status.bgpStatus"),
        Column("BFD", ".status.bfdStatus"),
    ),
    status=BGPSessionStateStatus,
)
