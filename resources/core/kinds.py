"""The kinds of Kubernetes itself that are read."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from resources.core import Namespace, Node, Secret, Service
from resources.core.configmap import ConfigMap
from resources.core.customresourcedefinition import CustomResourceDefinition
from resources.core.endpointslice import EndpointSlice
from resources.core.node import node_errors, of_other_nodes
from resources.core.secret import ENCODED, decode_secret, secret_errors
from resources.core.service import service_errors
from resources.core.servicecidr import ServiceCIDR, service_cidr_errors
from resources.kind import NAMED_AFTER_NODE, Kind
from statedb import Index, Key

BY_SERVICE: Final = "service"
"""The index of EndpointSlices by (namespace, name of the Service)."""


_IN_DEFAULT: Final = frozenset({("default", "kubernetes")})
"""The API server's Service, and its EndpointSlice."""
_SYSTEM_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")


def _slice_service(row: EndpointSlice) -> tuple[Key, ...]:
    key = row.service_key
    return (key,) if key is not None else ()


NODE = Kind(
    "Node",
    Node,
    group="",
    versions=("v1",),
    namespaced=False,
    errors=node_errors,
    table="nodes",
    of_node=replace(NAMED_AFTER_NODE, reduced=of_other_nodes),
)
NAMESPACE = Kind(
    "Namespace",
    Namespace,
    group="",
    versions=("v1",),
    namespaced=False,
    table="namespaces",
    of_tenants=True,
    metadata_only=True,
    built_in=frozenset(("", name) for name in _SYSTEM_NAMESPACES),
)
SERVICE = Kind(
    "Service",
    Service,
    group="",
    versions=("v1",),
    namespaced=True,
    errors=service_errors,
    table="services",
    built_in=_IN_DEFAULT,
    of_tenants=True,
)
ENDPOINT_SLICE = Kind(
    "EndpointSlice",
    EndpointSlice,
    group="discovery.k8s.io",
    versions=("v1",),
    namespaced=True,
    table="endpoint-slices",
    built_in=_IN_DEFAULT,
    of_tenants=True,
    indexes=(Index(BY_SERVICE, keys=_slice_service),),
)
SECRET = Kind(
    "Secret",
    Secret,
    group="",
    versions=("v1",),
    namespaced=True,
    table="secrets",
    convert=decode_secret,
    encoded=ENCODED,
    value_errors=secret_errors,
)
SERVICE_CIDR = Kind(
    "ServiceCIDR",
    ServiceCIDR,
    group="networking.k8s.io",
    versions=("v1", "v1beta1"),
    namespaced=False,
    errors=service_cidr_errors,
    table="service-cidrs",
    may_be_missing=True,
    built_in=frozenset({("", "kubernetes")}),
)
CONFIG_MAP = Kind(
    "ConfigMap",
    ConfigMap,
    group="",
    versions=("v1",),
    namespaced=True,
    table="config-maps",
)
"""Read of API servers alone, and by its name; not one of `KINDS`."""
DEFINITION = Kind(
    "CustomResourceDefinition",
    CustomResourceDefinition,
    group="apiextensions.k8s.io",
    versions=("v1",),
    namespaced=False,
    table="definitions",
)
"""For dialects that write what the definition of a kind has; not one of `KINDS`."""

KINDS: Final[tuple[Kind[Any], ...]] = (
    NODE,
    NAMESPACE,
    SERVICE,
    ENDPOINT_SLICE,
    SECRET,
    SERVICE_CIDR,
)
