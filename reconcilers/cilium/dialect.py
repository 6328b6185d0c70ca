"""Cilium's BGP APIs, v2 and v1, as a dialect."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from reconcilers.cilium import pod_ip_pools
from reconcilers.cilium.admission import ADMISSION
from reconcilers.cilium.cluster_addresses import RESERVED_ADDRESSES
from reconcilers.cilium.compat_metrics import COMPAT_METRICS
from reconcilers.cilium.compile_node import NodeConfiguration
from reconcilers.cilium.convert import TO_V2
from reconcilers.cilium.diagnosis import DIAGNOSIS
from reconcilers.cilium.host_needs import HOST_NEEDS
from reconcilers.cilium.options import CiliumOperatorOptions, CiliumOptions
from reconcilers.cilium.report import STATUSES
from reconcilers.cilium.reported_sessions import REPORTED_SESSIONS
from reconcilers.cilium.route_sets import RouteSet
from reconcilers.cilium.route_sources import (
    CiliumServiceSource,
    InterfaceSource,
    PodCidrSource,
    PodIpPoolSource,
)
from reconcilers.cilium.service_statuses import SERVICE_STATUSES
from reconcilers.cilium.services import ServiceOptions
from reconcilers.dialect import (
    Dialect,
    DialectSecrets,
    Explanation,
    NodeContext,
    NodeIntent,
    Operation,
    OptionalKinds,
    RbacRule,
    Rival,
    RouteSource,
    Target,
)
from reconcilers.model import Peer, RouteExplanation
from reconcilers.sliced_work import Slices
from resources.cilium import kinds as cilium
from resources.cilium.condition_types import (
    CONFLICTING_CLUSTER_CONFIG,
    MISSING_AUTH_SECRET,
    MISSING_PEER_CONFIGS,
    NO_MATCHING_NODE,
)
from resources.core.kinds import ENDPOINT_SLICE, NODE, SECRET, SERVICE
from resources.kind import Kind
from resources.meta import ObjectKey
from resources.tables import Tables
from statedb import Snapshot, Table

if TYPE_CHECKING:
    from reconcilers.cilium.candidates import LabelledCandidate
    from reconcilers.cilium.operate import ClusterConfiguration

_TRANSLATED: Final = (cilium.PEERING_POLICY, cilium.ADVERTISEMENT, cilium.LOAD_BALANCER_IP_POOL)
"""Kinds that the operator reads as well where it translates v1's policies."""
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


def _candidates(
    dialect: CiliumDialect,
    snapshot: Snapshot,
    context: NodeContext,
    rules: Mapping[str, RouteSet],
    target: Target | None,
) -> Iterator[LabelledCandidate]:
    # Imported for an explanation alone, as is what explains them.
    from reconcilers.cilium.candidates import candidates

    return candidates(dialect, snapshot, context, rules, target)


def _explain(candidate: LabelledCandidate, peer: Peer, rules: RouteSet | None) -> RouteExplanation:
    from reconcilers.cilium.explain import explain

    return explain(candidate, peer, rules)


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
    extensions: ClassVar = (
        COMPAT_METRICS,
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
        ADMISSION,
        STATUSES,
        REPORTED_SESSIONS,
        SERVICE_STATUSES,
        DIAGNOSIS,
        Operation(
            lambda dialect, *context: dialect.cluster.operate(*context),
            condition_kinds=(cilium.CLUSTER_CONFIG, cilium.PEER_CONFIG),
            condition_types=frozenset(
                {
                    CONFLICTING_CLUSTER_CONFIG,
                    MISSING_PEER_CONFIGS,
                    NO_MATCHING_NODE,
                    MISSING_AUTH_SECRET,
                }
            ),
            generated_kinds=(cilium.NODE_CONFIG,),
        ),
        Rival(
            "Cilium's BGP control plane",
            "k8s-app=cilium",
            config_map="kube-system/cilium-config",
            config_entry=("enable-bgp-control-plane", "true"),
        ),
        Explanation(
            _candidates,
            _explain,
            kinds={
                "ciliumpodippool": pod_ip_pools.ADVERTISEMENT_TYPE,
                "pool": pod_ip_pools.ADVERTISEMENT_TYPE,
            },
            selecting={
                cilium.PEERING_POLICY: cilium.node_selectors,
                cilium.CLUSTER_CONFIG: cilium.node_selectors,
            },
        ),
        TO_V2,
    )

    options: CiliumOptions | CiliumOperatorOptions

    def __init__(self, tables: Tables, options: CiliumOptions | CiliumOperatorOptions) -> None:
        super().__init__(tables, options)
        of_node = options if isinstance(options, CiliumOptions) else CiliumOptions()
        self.service_options = ServiceOptions(
            of_node.no_service_endpoints_routable,
            of_node.legacy_origin_attribute,
            of_node.service_proxy_name,
        )
        self._node = NodeConfiguration(tables, of_node)
        self.sources: tuple[RouteSource, ...] = (
            InterfaceSource(tables),
            PodCidrSource(tables),
            CiliumServiceSource(tables, self.service_options),
            PodIpPoolSource(tables),
        )

    @functools.cached_property
    def cluster(self) -> ClusterConfiguration:
        """The operator's part; an agent on an API server has none, and does not import it."""
        from reconcilers.cilium.operate import ClusterConfiguration

        return ClusterConfiguration(self.tables, self.options)

    @property
    def compiled_tables(self) -> tuple[Table[Any], ...]:
        """The tables of Cilium's kinds, Nodes and Secrets: each node has one owner."""
        t = self.tables
        return (*(t.of(kind) for kind in cilium.KINDS), t.nodes, t.secrets)

    def compile(self, snapshot: Snapshot, context: NodeContext) -> Slices[NodeIntent]:
        """Compile the node's NodeConfig, or the v1 policy that selects the node."""
        return self._node.compile(snapshot, context)
