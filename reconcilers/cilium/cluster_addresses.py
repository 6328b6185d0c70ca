"""The addresses of nodes, Pods and peers that Cilium's objects have: no Service may use them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconcilers.cilium.node_facts import addresses_of
from reconcilers.dialect import ClusterAddresses, Dialect, ReservedAddresses
from resources.cilium.kinds import (
    CILIUM_NODE,
    CLUSTER_CONFIG,
    NODE_CONFIG,
    NODE_CONFIG_OVERRIDE,
    PEERING_POLICY,
)
from resources.tables import Tables
from statedb import Snapshot


def cluster_addresses(dialect: Dialect, snapshot: Snapshot, node: str | None) -> ClusterAddresses:
    """Return the cluster addresses of Cilium's objects, the CiliumNodes of all nodes or of one."""
    tables = dialect.tables
    rows = [
        row for row in tables.of(CILIUM_NODE).all(snapshot) if node in (None, row.metadata.name)
    ]
    ipam = [row.spec.ipam for row in rows]
    pools = (
        text
        for ranges in ipam
        for allocation in ranges.pools.allocated
        for text in allocation.cidrs
    )
    return ClusterAddresses(
        nodes=frozenset(
            (
                *(text for row in rows for text in addresses_of(row)),
                *_local_addresses(tables, snapshot),
            )
        ),
        pods=frozenset((*(text for ranges in ipam for text in ranges.pod_cidrs), *pools)),
        peers=frozenset(_peers(tables, snapshot)),
    )


def _local_addresses(tables: Tables, snapshot: Snapshot) -> Iterator[str]:
    for config in tables.of(NODE_CONFIG).all(snapshot):
        for of_config in config.spec.bgp_instances:
            yield from (peer.local_address for peer in of_config.peers if peer.local_address)
    for override in tables.of(NODE_CONFIG_OVERRIDE).all(snapshot):
        for of_override in override.spec.bgp_instances:
            yield from (peer.local_address for peer in of_override.peers if peer.local_address)


def _peers(tables: Tables, snapshot: Snapshot) -> Iterator[str]:
    for config in tables.of(CLUSTER_CONFIG).all(snapshot):
        for instance in config.spec.bgp_instances:
            yield from (peer.peer_address for peer in instance.peers if peer.peer_address)
    for of_node in tables.of(NODE_CONFIG).all(snapshot):
        for written in of_node.spec.bgp_instances:
            yield from (peer.peer_address for peer in written.peers if peer.peer_address)
    for policy in tables.of(PEERING_POLICY).all(snapshot):
        for router in policy.spec.virtual_routers:
            for neighbor in router.neighbors:
                try:
                    yield neighbor.address
                except ValueError:
                    # A problem of the policy, which has no session with it.
                    continue


RESERVED_ADDRESSES: Final = ReservedAddresses(cluster_addresses)
