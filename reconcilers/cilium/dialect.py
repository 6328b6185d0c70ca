"""Cilium's BGP APIs, v2 and v1, as a dialect."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from reconcilers.cilium import pod_ip_pools
from reconcilers.cilium.cluster_addresses import RESERVED_ADDRESSES
from reconcilers.cilium.compile_node import NodeConfiguration
from reconcilers.cilium.convert import TO_V2
from reconcilers.cilium.host_needs import HOST_NEEDS
from reconcilers.cilium.node_facts import known_node
from reconcilers.cilium.options import CiliumOperatorOptions, CiliumOptions
from reconcilers.cilium.report import STATUSES
from reconcilers.cilium.route_sets import RouteSet
from reconcilers.cilium.route_sources import (
    InterfaceSource,
    PodCidrSource,
    PodIpPoolSource,
    ServiceSource,
)
from reconcilers.cilium.services import ServiceOptions, service_addresses
from reconcilers.dialect import (
    ClusterContext,
    ClusterIntent,
    Dialect,
    DialectSecrets,
    NodeContext,
    NodeIntent,
    OptionalKinds,
    RbacRule,
    Rival,
    RouteSource,
    Target,
)
from reconcilers.model import ObjectRef, Peer, RouteExplanation
from reconcilers.sliced_work import Slices, finish
from resources.cilium import kinds as cilium
from resources.cilium.condition_types import (
    CONFLICTING_CLUSTER_CONFIG,
    MISSING_AUTH_SECRET,
    MISSING_PEER_CONFIGS,
    NO_MATCHING_NODE,
)
from resources.core.kinds import BY_SERVICE, ENDPOINT_SLICE, NODE, SECRET, SERVICE
from resources.kind import Kind
from resources.meta import ObjectKey
from resources.tables import Tables
from statedb import Snapshot, Table

if TYPE_CHECKING:
    from reconcilers.cilium.candidates import Candidate
    from reconcilers.cilium.operate import ClusterConfiguration

_TRANSLATED: Final = (cilium.PEERING_POLICY, cilium.ADVERTISEMENT, cilium.LOAD_BALANCER_IP_POOL)
"""What the operator reads as well where it translates v1's policies."""
_TRANSLATE: Final = "translatePeeringPolicies"
"""The key of the operator's option that does so."""


def _secrets(dialect: Dialect, snapshot: Snapshot, secrets_namespace: str) -> Iterator[ObjectKey]:
    """Yield the Secrets that PeerConfigs and v1's policies name, of the configured namespace."""
    for config in dialect.tables.of(cilium.PEER_CONFIG).all(snapshot):
        yield secrets_namespace, config.spec.auth_secret_ref or ""
    for policy in dialect.tables.of(cilium.PEERING_POLICY).all(snapshot):
        for router in policy.spec.virtual_routers:
            for neighbor in router.neighbors:
                yield secrets_namespace, neighbor.auth_secret_ref or ""


class CiliumDialect(Dialect):
    """Cilium's BGP APIs."""

    name: ClassVar = "cilium"
    title: ClassVar = "Cilium BGP"
    kinds: ClassVar[tuple[Kind[Any], ...]] = (
        NODE,
        SERVICE,
        ENDPOINT_SLICE,
        SECRET,
        *cilium.KINDS,
    )
    cluster_kinds: ClassVar[tuple[Kind[Any], ...]] = (
        NODE,
        cilium.CILIUM_NODE,
        SECRET,
        cilium.CLUSTER_CONFIG,
        cilium.PEER_CONFIG,
        cilium.NODE_CONFIG,
        cilium.NODE_CONFIG_OVERRIDE,
        *_TRANSLATED,
    )
    options_type: ClassVar = CiliumOptions
    operator_options_type: ClassVar = CiliumOperatorOptions
    managed_conditions: ClassVar = frozenset(
        {CONFLICTING_CLUSTER_CONFIG, MISSING_PEER_CONFIGS, NO_MATCHING_NODE, MISSING_AUTH_SECRET}
    )
    extensions: ClassVar = (
        OptionalKinds(
            _TRANSLATED, when=lambda given: given.translates, option=_TRANSLATE, operator=True
        ),
        RbacRule(
            (
                cilium.ADVERTISEMENT,
                cilium.CLUSTER_CONFIG,
                cilium.NODE_CONFIG_OVERRIDE,
                cilium.PEER_CONFIG,
            ),
            ("get", "create", "patch", "delete"),
            operator=True,
            option=_TRANSLATE,
        ),
        DialectSecrets(_secrets),
        HOST_NEEDS,
        RESERVED_ADDRESSES,
        STATUSES,
        Rival(
            "Cilium's BGP control plane",
            "k8s-app=cilium",
            config_map="kube-system/cilium-config",
            config_entry=("enable-bgp-control-plane", "true"),
        ),
        TO_V2,
    )
    explained_kinds: ClassVar[Mapping[str, str]] = {
        "ciliumpodippool": pod_ip_pools.ADVERTISEMENT_TYPE,
        "pool": pod_ip_pools.ADVERTISEMENT_TYPE,
    }
    selecting_kinds: ClassVar = frozenset({cilium.PEERING_POLICY.name, cilium.CLUSTER_CONFIG.name})
    condition_kinds: ClassVar = (cilium.CLUSTER_CONFIG, cilium.PEER_CONFIG)
    generated_kinds: ClassVar = (cilium.NODE_CONFIG,)

    options: CiliumOptions | CiliumOperatorOptions

    def __init__(self, tables: Tables, options: CiliumOptions | CiliumOperatorOptions) -> None:
        super().__init__(tables, options)
        of_node = options if isinstance(options, CiliumOptions) else CiliumOptions()
        self._service_options = ServiceOptions(
            of_node.no_service_endpoints_routable, of_node.legacy_origin_attribute
        )
        self._node = NodeConfiguration(tables, of_node)
        self.sources: tuple[RouteSource, ...] = (
            InterfaceSource(tables),
            PodCidrSource(tables),
            ServiceSource(tables, self._service_options),
            PodIpPoolSource(tables),
        )

    @functools.cached_property
    def _cluster(self) -> ClusterConfiguration:
        """The operator's part; an agent on an API server has none, and does not import it."""
        from reconcilers.cilium.operate import ClusterConfiguration

        return ClusterConfiguration(self.tables, self.options)

    @property
    def compiled_tables(self) -> tuple[Table[Any], ...]:
        """The tables of Cilium's kinds, Nodes and Secrets: each node has one owner."""
        t = self.tables
        return (*(t.of(kind) for kind in cilium.KINDS), t.nodes, t.secrets)

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:
        """Compile the node's NodeConfig, or the v1 policy that selects the node."""
        return finish(self._node.compile(snapshot, context))

    def compile_slices(self, snapshot: Snapshot, context: NodeContext) -> Slices[NodeIntent]:
        """As `compile`: a thousand objects may select the node."""
        return self._node.compile(snapshot, context)

    def candidates(
        self,
        snapshot: Snapshot,
        context: NodeContext,
        rules: Mapping[str, RouteSet],
        target: Target | None,
    ) -> Iterator[Candidate]:
        """Yield the addresses of Services, pod networks, pools and interfaces."""
        from reconcilers.cilium import candidates

        t, node = self.tables, context.node
        named = {
            entry.interface
            for route_set in rules.values()
            for entries in route_set.entries.values()
            for entry in entries
            if entry.interface is not None
        }
        if target is not None:
            # The target may be an interface that no rule names.
            named.update(device.name for device in context.host.devices)
        yield from candidates.of_interfaces(context.host, node, sorted(named))
        known = known_node(t, snapshot, node)
        if known is not None:
            yield from candidates.of_pod_networks(known)
        cilium_node = t.of(cilium.CILIUM_NODE).get(snapshot, ("", node))
        if cilium_node is not None:
            pools = {pool.metadata.name: pool for pool in t.of(cilium.POD_IP_POOL).all(snapshot)}
            yield from candidates.of_pools(cilium_node, pools)
        for service in t.services.all(snapshot):
            ref = ObjectRef(SERVICE.name, *service.key)
            if target is None or target.prefix is not None or target.names(ref):
                slices = t.endpoint_slices.find(snapshot, BY_SERVICE, service.key)
                yield from candidates.of_service(
                    service_addresses(service, slices, node, self._service_options)
                )

    def explain(self, candidate: Candidate, peer: Peer, rules: RouteSet | None) -> RouteExplanation:
        """Explain what becomes of a candidate at a peer."""
        from reconcilers.cilium.explain import explain

        return explain(candidate, peer, rules)

    def operate(self, snapshot: Snapshot, context: ClusterContext) -> ClusterIntent:
        """Generate NodeConfigs and report conditions."""
        return finish(self._cluster.operate(snapshot, context))

    def operate_slices(self, snapshot: Snapshot, context: ClusterContext) -> Slices[ClusterIntent]:
        """As `operate`: there may be thousands of nodes, and of objects."""
        return self._cluster.operate(snapshot, context)
