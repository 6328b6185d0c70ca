"""Kinds that have a status only: ServiceBGPStatus and ConfigurationState."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from resources.crds.schema_markers import SchemaPart, doc
from resources.meta import Resource, Struct
from resources.metav1 import Conditions

_FIXED: Final[SchemaPart] = {
    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "Value is immutable"}]
}
NODE_LABEL: Final = "metallb.io/node"
SERVICE_LABEL: Final = "metallb.io/service-name"
NAMESPACE_LABEL: Final = "metallb.io/service-namespace"
COMPONENT_LABEL: Final = "metallb.io/component-type"
NODE_NAME_LABEL: Final = "metallb.io/node-name"


class NoSpec(Struct, frozen=True):
    """A specification without fields."""


class ServiceBGPStatusStatus(Struct, frozen=True):
    """To which BGPPeers one node is to advertise one Service."""

    node: Annotated[str, doc("The node.", _FIXED)] = ""
    service_name: Annotated[str, doc("The name of the Service.", _FIXED)] = ""
    service_namespace: Annotated[str, doc("The namespace of the Service.", _FIXED)] = ""
    peers: Annotated[
        tuple[str, ...], doc("The BGPPeers to which the node advertises the Service, by name.")
    ] = ()


class ServiceBGPStatus(Resource, frozen=True):
    """One Service on one node."""

    spec: NoSpec = msgspec.field(default_factory=NoSpec)
    status: ServiceBGPStatusStatus = msgspec.field(default_factory=ServiceBGPStatusStatus)


class ConfigurationStateStatus(Struct, frozen=True):
    """Whether a component can use MetalLB's objects as they are."""

    result: Annotated[Literal["Valid", "Invalid", "Unknown"], doc("Valid, Invalid or Unknown.")] = (
        "Unknown"
    )
    error_summary: Annotated[str, doc("What is wrong, for people.")] = ""
    conditions: Conditions = ()


class ConfigurationState(Resource, frozen=True):
    """One component: the controller, or the speaker of one node."""

    spec: NoSpec = msgspec.field(default_factory=NoSpec)
    status: ConfigurationStateStatus = msgspec.field(default_factory=ConfigurationStateStatus)
