"""OVN-Kubernetes' kinds for BGP, NetworkAttachmentDefinition, and Pod as far as it is read."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from resources.crds.schema_markers import Column, Definition
from resources.errors import FieldError
from resources.kind import Kind
from resources.ovnk.egressip import EgressIP, egress_ip_errors
from resources.ovnk.managed_fields import ManagedMeta
from resources.ovnk.networkattachmentdefinition import NetworkAttachmentDefinition
from resources.ovnk.networks import (
    ClusterUserDefinedNetwork,
    NetworkStatus,
    UserDefinedNetwork,
    cluster_network_errors,
    user_network_errors,
)
from resources.ovnk.pod import Pod
from resources.ovnk.routeadvertisements import (
    NO_SPEC,
    RouteAdvertisements,
    RouteAdvertisementsStatus,
    empty_selector_errors,
    route_advertisements_errors,
)
from resources.ovnk.uplinkstate import UplinkState
from resources.ovnk.vtep import Vtep, VTEPStatus, vtep_errors
from resources.schema import without_nulls

GROUP: Final = "k8s.ovn.org"
_V1: Final = ("v1",)


def _invalid(value: Any, errors: tuple[FieldError, ...]) -> RouteAdvertisements:  # noqa: ANN401  JSON
    metadata = msgspec.convert(without_nulls(value["metadata"]), ManagedMeta)
    if metadata.namespace:
        metadata = msgspec.structs.replace(metadata, namespace="")
    return RouteAdvertisements(metadata=metadata, spec=NO_SPEC, invalid=errors)


ROUTE_ADVERTISEMENTS = Kind(
    "RouteAdvertisements",
    RouteAdvertisements,
    group=GROUP,
    versions=_V1,
    plural="routeadvertisements",
    namespaced=False,
    table="ovnk-route-advertisements",
    strict=True,
    errors=route_advertisements_errors,
    value_errors=empty_selector_errors,
    invalid=_invalid,
    definition=Definition(
        "RouteAdvertisements advertises networks to the neighbours of FRRConfigurations.",
        short_names=("ra",),
        columns=(Column("Status", ".status.status"),),
        status=RouteAdvertisementsStatus,
    ),
)
CLUSTER_NETWORK = Kind(
    "ClusterUserDefinedNetwork",
    ClusterUserDefinedNetwork,
    group=GROUP,
    versions=_V1,
    namespaced=False,
    table="ovnk-cluster-networks",
    errors=cluster_network_errors,
    definition=Definition(
        "ClusterUserDefinedNetwork is a network of the Pods of the namespaces that it selects.",
        short_names=("cudn",),
        columns=(Column("Age", ".metadata.creationTimestamp", "date"),),
        status=NetworkStatus,
    ),
)
USER_NETWORK = Kind(
    "UserDefinedNetwork",
    UserDefinedNetwork,
    group=GROUP,
    versions=_V1,
    namespaced=True,
    table="ovnk-user-networks",
    errors=user_network_errors,
    of_tenants=True,
    definition=Definition(
        "UserDefinedNetwork is a network of the Pods of its namespace; it cannot be advertised.",
        short_names=("udn",),
        status=NetworkStatus,
    ),
)
EGRESS_IP = Kind(
    "EgressIP",
    EgressIP,
    group=GROUP,
    versions=_V1,
    namespaced=False,
    table="ovnk-egress-ips",
    errors=egress_ip_errors,
)
VTEP = Kind(
    "VTEP",
    Vtep,
    group=GROUP,
    versions=_V1,
    namespaced=False,
    table="ovnk-vteps",
    errors=vtep_errors,
    strict=True,
    definition=Definition(
        "VTEP is a set of addresses of nodes between which EVPN networks are tunnelled.",
        status=VTEPStatus,
    ),
)
UPLINK_STATE = Kind(
    "UplinkState",
    UplinkState,
    group=GROUP,
    versions=("v1alpha1",),
    namespaced=False,
    table="ovnk-uplink-states",
)
NETWORK_ATTACHMENT = Kind(
    "NetworkAttachmentDefinition",
    NetworkAttachmentDefinition,
    group="k8s.cni.cncf.io",
    versions=_V1,
    plural="network-attachment-definitions",
    namespaced=True,
    table="network-attachment-definitions",
    of_tenants=True,
)
POD = Kind(
    "Pod",
    Pod,
    group="",
    versions=_V1,
    namespaced=True,
    table="pods",
    of_tenants=True,
)
"""Read with dynamic allocation alone: a network is active on the nodes of its Pods."""

KINDS: Final[tuple[Kind[Any], ...]] = (
    ROUTE_ADVERTISEMENTS,
    CLUSTER_NETWORK,
    USER_NETWORK,
    EGRESS_IP,
    VTEP,
    UPLINK_STATE,
    NETWORK_ATTACHMENT,
)
