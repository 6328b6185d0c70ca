"""One StateDB table for each kind, and one for what is wrong with what a source read."""

from __future__ import annotations

from typing import Any

from resources.cilium import (
    CiliumBGPAdvertisement,
    CiliumBGPClusterConfig,
    CiliumBGPNodeConfig,
    CiliumBGPNodeConfigOverride,
    CiliumBGPPeerConfig,
    CiliumBGPPeeringPolicy,
    CiliumLoadBalancerIPPool,
    CiliumNode,
    CiliumPodIPPool,
)
from resources.core import EndpointSlice, Namespace, Node, Secret, Service
from resources.host import Host, NodeNetwork
from resources.kinds import KINDS, Kind
from resources.source import SourceProblem
from statedb import Database, Index, Key, Table

KEY = "key"
"""The primary index of every resource table: (namespace, name)."""
BY_SERVICE = "service"
"""EndpointSlices by (namespace, name of the Service)."""


def _slice_service(row: EndpointSlice) -> tuple[Key, ...]:
    key = row.service_key
    return (key,) if key is not None else ()


def _problem_key(row: SourceProblem) -> Key:
    return (row.file, row.document, str(row.object or ""), row.field, row.message)


class Tables:
    """The tables of all kinds, by name and by kind."""

    def __init__(self, db: Database) -> None:
        def table(name: str, *indexes: Index[Any]) -> Table[Any]:
            return db.table(name, Index(KEY, lambda row: row.key), indexes)

        self.nodes: Table[Node] = table("nodes")
        self.namespaces: Table[Namespace] = table("namespaces")
        self.services: Table[Service] = table("services")
        self.endpoint_slices: Table[EndpointSlice] = table(
            "endpoint-slices", Index(BY_SERVICE, keys=_slice_service)
        )
        self.secrets: Table[Secret] = table("secrets")
        self.cilium_cluster_configs: Table[CiliumBGPClusterConfig] = table("cilium-cluster-configs")
        self.cilium_peer_configs: Table[CiliumBGPPeerConfig] = table("cilium-peer-configs")
        self.cilium_advertisements: Table[CiliumBGPAdvertisement] = table("cilium-advertisements")
        self.cilium_node_configs: Table[CiliumBGPNodeConfig] = table("cilium-node-configs")
        self.cilium_node_config_overrides: Table[CiliumBGPNodeConfigOverride] = table(
            "cilium-node-config-overrides"
        )
        self.cilium_peering_policies: Table[CiliumBGPPeeringPolicy] = table(
            "cilium-peering-policies"
        )
        self.cilium_nodes: Table[CiliumNode] = table("cilium-nodes")
        self.cilium_load_balancer_ip_pools: Table[CiliumLoadBalancerIPPool] = table(
            "cilium-load-balancer-ip-pools"
        )
        self.cilium_pod_ip_pools: Table[CiliumPodIPPool] = table("cilium-pod-ip-pools")
        self.node_networks: Table[NodeNetwork] = table("node-networks")
        self.host: Table[Host] = table("host")
        """What the kernel of this host says: one row, or none while nobody asked it."""
        self.source_problems: Table[SourceProblem] = db.table(
            "source-problems", Index(KEY, _problem_key)
        )
        self._by_kind: dict[str, Table[Any]] = {
            kind.name: getattr(self, field) for kind, field in zip(KINDS, _FIELDS, strict=True)
        }

    def of(self, kind: Kind[Any]) -> Table[Any]:
        """Find a kind's table."""
        return self._by_kind[kind.name]

    @property
    def resources(self) -> tuple[Table[Any], ...]:
        """The tables of all kinds."""
        return tuple(self._by_kind.values())


_FIELDS = (
    "nodes",
    "namespaces",
    "services",
    "endpoint_slices",
    "secrets",
    "cilium_cluster_configs",
    "cilium_peer_configs",
    "cilium_advertisements",
    "cilium_node_configs",
    "cilium_node_config_overrides",
    "cilium_peering_policies",
    "cilium_nodes",
    "cilium_load_balancer_ip_pools",
    "cilium_pod_ip_pools",
    "node_networks",
)
"""In the order of `resources.kinds.KINDS`."""
