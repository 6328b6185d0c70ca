"""Whether some object needs what only the node's own kernel knows: addresses, routes, interfaces."""

from __future__ import annotations

from typing import Any

from reconcilers.intent.cilium import interfaces
from reconcilers.intent.cilium.members import known_nodes
from reconcilers.intent.cilium.node import router_id_of
from resources.tables import Tables
from statedb import Snapshot, Table


def followed(tables: Tables) -> tuple[Table[Any], ...]:
    """Return the tables that it depends on."""
    return (
        tables.nodes,
        tables.cilium_nodes,
        tables.cilium_advertisements,
        tables.cilium_peer_configs,
        tables.cilium_cluster_configs,
        tables.cilium_node_configs,
        tables.cilium_node_config_overrides,
        tables.node_networks,
    )


def is_host_needed(tables: Tables, snapshot: Snapshot, node: str) -> bool:
    """Tell whether the kernel has to be asked; not where a NodeNetwork stands for it."""
    t = tables
    if t.node_networks.get(snapshot, ("", node)) is not None:
        return False
    return _is_router_id_needed(t, snapshot, node) or interfaces.are_needed(
        t.cilium_advertisements.all(snapshot),
        t.cilium_peer_configs.all(snapshot),
        (*t.cilium_cluster_configs.all(snapshot), *t.cilium_node_configs.all(snapshot)),
    )


def _is_router_id_needed(t: Tables, snapshot: Snapshot, node: str) -> bool:
    """Tell whether some instance has no router ID but what an interface may give."""
    known = known_nodes(t.nodes.all(snapshot), t.cilium_nodes.all(snapshot)).get(node)
    if known is None or router_id_of(known) is not None:
        return False
    written = t.cilium_node_configs.get(snapshot, ("", node))
    if written is not None and any(i.router_id is None for i in written.spec.bgp_instances):
        return True
    override = t.cilium_node_config_overrides.get(snapshot, ("", node))
    given = {i.name for i in override.spec.bgp_instances if i.router_id} if override else set()
    return any(
        instance.name not in given
        for config in t.cilium_cluster_configs.all(snapshot)
        for instance in config.spec.bgp_instances
    )
