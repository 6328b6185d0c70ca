"""Whether an object refers to the node's kernel: its interfaces, addresses or routes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconcilers.cilium import interfaces
from reconcilers.cilium.default_router_id import router_id_of
from reconcilers.cilium.node_facts import known_node
from reconcilers.dialect import Dialect, HostNeeds
from resources.cilium import (
    CiliumBGPAdvertisement,
    CiliumBGPClusterConfig,
    CiliumBGPNodeConfig,
    CiliumBGPPeerConfig,
)
from resources.cilium.kinds import (
    ADVERTISEMENT,
    CLUSTER_CONFIG,
    NODE_CONFIG,
    NODE_CONFIG_OVERRIDE,
    PEER_CONFIG,
)
from resources.tables import Tables
from statedb import Snapshot


def is_host_needed(dialect: Dialect, snapshot: Snapshot, node: str) -> bool:
    """True if Cilium's objects need the host: interfaces that they refer to, or for a router ID."""
    tables = dialect.tables
    return _is_router_id_needed(tables, snapshot, node) or _are_interfaces_needed(
        tables.of(ADVERTISEMENT).all(snapshot),
        tables.of(PEER_CONFIG).all(snapshot),
        (*tables.of(CLUSTER_CONFIG).all(snapshot), *tables.of(NODE_CONFIG).all(snapshot)),
    )


def _is_router_id_needed(tables: Tables, snapshot: Snapshot, node: str) -> bool:
    """True if an instance has no router ID, except one derived from an interface."""
    known = known_node(tables, snapshot, node)
    if known is None or router_id_of(known) is not None:
        return False
    written = tables.of(NODE_CONFIG).get(snapshot, ("", node))
    if written is not None and any(i.router_id is None for i in written.spec.bgp_instances):
        return True
    override = tables.of(NODE_CONFIG_OVERRIDE).get(snapshot, ("", node))
    overridden = {i.name for i in override.spec.bgp_instances if i.router_id} if override else set()
    return any(
        instance.name not in overridden
        for config in tables.of(CLUSTER_CONFIG).all(snapshot)
        for instance in config.spec.bgp_instances
    )


def _are_interfaces_needed(
    advertisements: Iterable[CiliumBGPAdvertisement],
    peer_configs: Iterable[CiliumBGPPeerConfig],
    configs: Iterable[CiliumBGPClusterConfig | CiliumBGPNodeConfig],
) -> bool:
    """True if an object refers to an interface or a route of the host."""
    return (
        any(
            entry.advertisement_type == interfaces.ADVERTISEMENT_TYPE
            for advertisement in advertisements
            for entry in advertisement.spec.advertisements
        )
        or any(config.spec.transport.source_interface for config in peer_configs)
        or any(
            peer.auto_discovery is not None
            for config in configs
            for instance in config.spec.bgp_instances
            for peer in instance.peers
        )
    )


HOST_NEEDS: Final = HostNeeds(is_host_needed)
