"""Objects that a node writes: its ConfigurationState, and a ServiceBGPStatus for each Service.

Source: MetalLB internal/k8s/controllers (servicebgpstatus_controller.go, configurationstate).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from reconcilers.dialect import NodeObject, NodeObjectContext, NodeObjectKind, WrittenObjects
from reconcilers.metallb.generated import peers_of_service
from reconcilers.model import ObjectRef
from resources.core.kinds import SERVICE
from resources.enumeration import joined
from resources.label_selectors import label_value
from resources.metallb import kinds as metallb
from resources.metallb.status import (
    COMPONENT_LABEL,
    NAMESPACE_LABEL,
    NODE_LABEL,
    NODE_NAME_LABEL,
    SERVICE_LABEL,
    ConfigurationStateStatus,
    ServiceBGPStatusStatus,
)
from resources.metav1 import Condition
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.metallb.dialect import MetalLBDialect

CONFIGURATION_STATE: Final = NodeObjectKind(
    metallb.CONFIGURATION_STATE,
    option="namespace",
    name="speaker-{node}",
    node_label=NODE_NAME_LABEL,
    owned_by_pod=True,
)
SERVICE_STATUS: Final = NodeObjectKind(
    metallb.SERVICE_BGP_STATUS,
    option="namespace",
    generate_name="bgp-",
    node_label=NODE_LABEL,
    identity=(SERVICE_LABEL, NAMESPACE_LABEL),
    owned_by_pod=True,
)
"""Objects that a reason names."""
OWN_KINDS: Final = frozenset(kind.name for kind in metallb.CONFIGURATION)


def configuration_state(snapshot: Snapshot, context: NodeObjectContext, merging: str) -> NodeObject:
    """Return the node's ConfigurationState object; ``merging`` is the dialect that merges.

    It is Invalid for what stops the objects of this node.
    """
    problems = sorted(
        problem
        for problem in context.intent.problems.all(snapshot)
        if problem.category != "unsupported"
        and problem.dialect in (context.dialect, merging)
        and any(ref.kind in OWN_KINDS for ref in problem.objects)
    )
    summary = joined(map(str, problems))
    condition = Condition(
        type="configReconcilerValid",
        status="False" if problems else "True",
        reason="ConfigError" if problems else "SyncStateSuccess",
        message=summary,
        last_transition_time="",
    )
    status = ConfigurationStateStatus(
        result="Invalid" if problems else "Valid", error_summary=summary, conditions=(condition,)
    )
    labels = {COMPONENT_LABEL: "speaker"}
    return NodeObject(metallb.CONFIGURATION_STATE.name, status, labels)


def service_status(
    snapshot: Snapshot, context: NodeObjectContext, service: ObjectRef
) -> Iterator[NodeObject]:
    """Yield the node's ServiceBGPStatus object of a Service, if it is advertised to a BGPPeer."""
    peers = peers_of_service(snapshot, context.intent, service)
    if not peers:
        return
    status = ServiceBGPStatusStatus(
        node=context.node,
        service_name=service.name,
        service_namespace=service.namespace,
        peers=peers,
    )
    labels = {
        SERVICE_LABEL: label_value(service.name),
        NAMESPACE_LABEL: label_value(service.namespace),
    }
    yield NodeObject(metallb.SERVICE_BGP_STATUS.name, status, labels)


def _of_node(
    dialect: MetalLBDialect, snapshot: Snapshot, context: NodeObjectContext
) -> Iterator[NodeObject]:
    yield configuration_state(snapshot, context, dialect.feeds)


def _of_service(
    dialect: MetalLBDialect, snapshot: Snapshot, context: NodeObjectContext, service: ObjectRef
) -> Iterator[NodeObject]:
    if dialect.of_node.service_statuses:
        yield from service_status(snapshot, context, service)


WRITTEN_OBJECTS: Final = WrittenObjects(
    (SERVICE_STATUS, CONFIGURATION_STATE), _of_node, frozenset({SERVICE.name}), _of_service
)
