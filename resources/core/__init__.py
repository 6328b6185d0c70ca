"""Kubernetes' own kinds, only with the fields that are used."""

from resources.core.endpointslice import Endpoint, EndpointConditions, EndpointSlice
from resources.core.namespace import Namespace
from resources.core.node import Node, NodeAddress, NodeSpec, NodeStatus
from resources.core.secret import Secret
from resources.core.service import Service, ServiceSpec, ServiceStatus

__all__ = [
    "Endpoint",
    "EndpointConditions",
    "EndpointSlice",
    "Namespace",
    "Node",
    "NodeAddress",
    "NodeSpec",
    "NodeStatus",
    "Secret",
    "Service",
    "ServiceSpec",
    "ServiceStatus",
]
