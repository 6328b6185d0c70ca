"""The addresses of peers that BGPPolicies have: no Service may use them. Pure."""

from __future__ import annotations

from typing import Final

from reconcilers.dialect import ClusterAddresses, Dialect, ReservedAddresses
from resources.antrea.kinds import BGP_POLICY
from statedb import Snapshot


def cluster_addresses(dialect: Dialect, snapshot: Snapshot, _node: str | None) -> ClusterAddresses:
    """Return the peers' addresses of all BGPPolicies of the cluster: no Service may use them."""
    rows = dialect.tables.of(BGP_POLICY).all(snapshot)
    peers = frozenset(peer.address for row in rows for peer in row.spec.bgp_peers)
    return ClusterAddresses(peers=peers)


RESERVED_ADDRESSES: Final = ReservedAddresses(cluster_addresses)
