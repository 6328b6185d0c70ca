"""The registry of kinds: how each is named in the API, and how its objects become rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import msgspec

from resources import cilium, core
from resources.core.endpointslice import EndpointSlice
from resources.core.node import node_errors
from resources.core.secret import ENCODED, decode_secret, secret_errors
from resources.core.service import service_errors
from resources.crds.annotations import Definition
from resources.errors import FieldError, InvalidObject, ObjectName
from resources.host import NodeNetwork, node_network_errors
from resources.meta import Resource
from resources.schema import structural_errors, unknown_fields, without_nulls

T = TypeVar("T", bound=Resource)

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
DEFAULT_NAMESPACE = "default"


class Kind(Generic[T]):
    """One kind of object."""

    def __init__(
        self,
        name: str,
        row: type[T],
        *,
        group: str,
        versions: tuple[str, ...],
        plural: str,
        namespaced: bool,
        errors: Callable[[T], Iterator[FieldError]] | None = None,
        strict: bool = False,
        definition: Definition | None = None,
    ) -> None:
        self.name = name
        self.row = row
        self.group = group
        self.versions = versions
        """The first one is written, all are read."""
        self.plural = plural
        self.namespaced = namespaced
        self.strict = strict
        """Whether unknown fields are told: the whole kind is known here, not only what is used."""
        self.definition = definition
        """What its CustomResourceDefinition says; None for kinds that are Kubernetes' own."""
        self._errors = errors
        self._decoder = msgspec.json.Decoder(row)

    def __repr__(self) -> str:
        """Name it."""
        return f"<Kind {self.name}>"

    @property
    def api_versions(self) -> tuple[str, ...]:
        """``group/version`` of each version."""
        return tuple(f"{self.group}/{v}" if self.group else v for v in self.versions)

    @property
    def custom(self) -> bool:
        """Whether a CustomResourceDefinition brings it, so that an API server may not know it."""
        return bool(self.group) and not self.group.endswith(".k8s.io")

    def path(self, version: str, namespace: str = "") -> str:
        """Where an API server has the list of it, in one namespace or in all."""
        root = f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"
        within = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}{within}/{self.plural}"

    def decode_json(self, octets: bytes | msgspec.Raw) -> T:
        """Make a row of an object as an API server sends it, which skips what is not used.

        Raises `InvalidObject` with all that is wrong, `msgspec.DecodeError` for what is not JSON.
        """
        if self.name == "Secret":
            return self.decode(msgspec.json.decode(octets))
        try:
            row = self._decoder.decode(octets)
        except msgspec.ValidationError:
            return self.decode(msgspec.json.decode(octets))
        if bool(row.metadata.namespace) != self.namespaced:
            return self.decode(msgspec.json.decode(octets))
        found = list(self._rules(row, None))
        if found:
            name = ObjectName(self.name, row.metadata.namespace, row.metadata.name)
            raise InvalidObject(name, tuple(found))
        return row

    def decode(self, value: Any) -> T:  # noqa: ANN401  JSON
        """Make a row of an object. Raises `InvalidObject` with all that is wrong."""
        value = self._with_namespace(value)
        try:
            try:
                row = self._convert(value)
            except msgspec.ValidationError:
                # Perhaps only for a null, which for Kubernetes is an absent field.
                value = without_nulls(value)
                row = self._convert(value)
        except msgspec.ValidationError as error:
            errors = structural_errors(value, ENCODED if self.name == "Secret" else self.row)
            raise InvalidObject(
                self.name_of(value), tuple(errors) or (FieldError("", str(error)),)
            ) from None
        found = list(self._rules(row, value))
        if found:
            raise InvalidObject(self.name_of(value), tuple(found))
        return row

    def unknown_fields(self, value: Any) -> list[FieldError]:  # noqa: ANN401  JSON
        """List fields that the kind does not have; only for kinds that are known whole."""
        if not self.strict:
            return []
        ignored = ("metadata", "status")
        errors = unknown_fields(value, self.row)
        return [
            error
            for error in errors
            if error.path not in ("apiVersion", "kind", *ignored)
            and not error.path.startswith(tuple(f"{name}." for name in ignored))
        ]

    def name_of(self, value: Any) -> ObjectName:  # noqa: ANN401  JSON
        """Name an object as far as it can be named."""
        metadata = value.get("metadata") if isinstance(value, dict) else None
        metadata = metadata if isinstance(metadata, dict) else {}
        namespace = str(metadata.get("namespace") or DEFAULT_NAMESPACE) if self.namespaced else ""
        return ObjectName(self.name, namespace, str(metadata.get("name") or ""))

    def _convert(self, value: Any) -> T:  # noqa: ANN401
        if self.name == "Secret":
            return decode_secret(value)  # type: ignore[return-value]  # T is Secret then
        return msgspec.convert(value, self.row)

    def _with_namespace(self, value: Any) -> Any:  # noqa: ANN401
        metadata = value.get("metadata") if isinstance(value, dict) else None
        if isinstance(metadata, dict):
            if self.namespaced and not metadata.get("namespace"):
                value = {**value, "metadata": {**metadata, "namespace": DEFAULT_NAMESPACE}}
            elif not self.namespaced and "namespace" in metadata:
                kept = {k: v for k, v in metadata.items() if k != "namespace"}
                value = {**value, "metadata": kept}
        return value

    def _rules(self, row: T, value: Any) -> Iterator[FieldError]:  # noqa: ANN401
        name, namespace = row.metadata.name, row.metadata.namespace
        if len(name) > 253 or not _NAME.fullmatch(name):
            shown = name if len(name) <= 64 else name[:63] + "…"
            yield FieldError("metadata.name", f"{shown!r} is not a DNS subdomain (RFC 1123)")
        if namespace and not _NAME.fullmatch(namespace):
            yield FieldError("metadata.namespace", f"{namespace[:64]!r} is not a DNS label")
        if self.name == "Secret":
            yield from secret_errors(value)
        elif self._errors is not None:
            yield from self._errors(row)


NODE = Kind(
    "Node",
    core.Node,
    group="",
    versions=("v1",),
    plural="nodes",
    namespaced=False,
    errors=node_errors,
)
NAMESPACE = Kind(
    "Namespace", core.Namespace, group="", versions=("v1",), plural="namespaces", namespaced=False
)
SERVICE = Kind(
    "Service",
    core.Service,
    group="",
    versions=("v1",),
    plural="services",
    namespaced=True,
    errors=service_errors,
)
ENDPOINT_SLICE = Kind(
    "EndpointSlice",
    EndpointSlice,
    group="discovery.k8s.io",
    versions=("v1",),
    plural="endpointslices",
    namespaced=True,
)
SECRET = Kind("Secret", core.Secret, group="", versions=("v1",), plural="secrets", namespaced=True)
_CILIUM = ("v2", "v2alpha1")
CLUSTER_CONFIG = Kind(
    "CiliumBGPClusterConfig",
    cilium.CiliumBGPClusterConfig,
    group="cilium.io",
    versions=_CILIUM,
    plural="ciliumbgpclusterconfigs",
    namespaced=False,
    errors=cilium.cluster_config_errors,
    strict=True,
    definition=cilium.definitions.CLUSTER_CONFIG,
)
PEER_CONFIG = Kind(
    "CiliumBGPPeerConfig",
    cilium.CiliumBGPPeerConfig,
    group="cilium.io",
    versions=_CILIUM,
    plural="ciliumbgppeerconfigs",
    namespaced=False,
    errors=cilium.peer_config_errors,
    strict=True,
    definition=cilium.definitions.PEER_CONFIG,
)
ADVERTISEMENT = Kind(
    "CiliumBGPAdvertisement",
    cilium.CiliumBGPAdvertisement,
    group="cilium.io",
    versions=_CILIUM,
    plural="ciliumbgpadvertisements",
    namespaced=False,
    errors=cilium.advertisement_errors,
    strict=True,
    definition=cilium.definitions.ADVERTISEMENT,
)
NODE_CONFIG = Kind(
    "CiliumBGPNodeConfig",
    cilium.CiliumBGPNodeConfig,
    group="cilium.io",
    versions=_CILIUM,
    plural="ciliumbgpnodeconfigs",
    namespaced=False,
    errors=cilium.node_config_errors,
    strict=True,
    definition=cilium.definitions.NODE_CONFIG,
)
NODE_CONFIG_OVERRIDE = Kind(
    "CiliumBGPNodeConfigOverride",
    cilium.CiliumBGPNodeConfigOverride,
    group="cilium.io",
    versions=_CILIUM,
    plural="ciliumbgpnodeconfigoverrides",
    namespaced=False,
    errors=cilium.node_config_override_errors,
    strict=True,
    definition=cilium.definitions.NODE_CONFIG_OVERRIDE,
)
PEERING_POLICY = Kind(
    "CiliumBGPPeeringPolicy",
    cilium.CiliumBGPPeeringPolicy,
    group="cilium.io",
    versions=("v2alpha1",),
    plural="ciliumbgppeeringpolicies",
    namespaced=False,
    errors=cilium.peering_policy_errors,
    strict=True,
    definition=cilium.definitions.PEERING_POLICY,
)
CILIUM_NODE = Kind(
    "CiliumNode",
    cilium.CiliumNode,
    group="cilium.io",
    versions=("v2",),
    plural="ciliumnodes",
    namespaced=False,
    errors=cilium.cilium_node_errors,
)
LOAD_BALANCER_IP_POOL = Kind(
    "CiliumLoadBalancerIPPool",
    cilium.CiliumLoadBalancerIPPool,
    group="cilium.io",
    versions=_CILIUM,
    plural="ciliumloadbalancerippools",
    namespaced=False,
    errors=cilium.load_balancer_pool_errors,
    strict=True,
)
POD_IP_POOL = Kind(
    "CiliumPodIPPool",
    cilium.CiliumPodIPPool,
    group="cilium.io",
    versions=_CILIUM,
    plural="ciliumpodippools",
    namespaced=False,
)
NODE_NETWORK = Kind(
    "NodeNetwork",
    NodeNetwork,
    group="waggle.dev",
    versions=("v1alpha1",),
    plural="nodenetworks",
    namespaced=False,
    errors=node_network_errors,
    strict=True,
)

KINDS: tuple[Kind[Any], ...] = (
    NODE,
    NAMESPACE,
    SERVICE,
    ENDPOINT_SLICE,
    SECRET,
    CLUSTER_CONFIG,
    PEER_CONFIG,
    ADVERTISEMENT,
    NODE_CONFIG,
    NODE_CONFIG_OVERRIDE,
    PEERING_POLICY,
    CILIUM_NODE,
    LOAD_BALANCER_IP_POOL,
    POD_IP_POOL,
    NODE_NETWORK,
)

_BY_NAME = {(version, kind.name): kind for kind in KINDS for version in kind.api_versions}


def find_kind(api_version: str, name: str) -> Kind[Any] | None:
    """Find the kind of an object by what it says of itself."""
    return _BY_NAME.get((api_version, name))
