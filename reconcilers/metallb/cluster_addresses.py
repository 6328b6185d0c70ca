"""The addresses of nodes and peers that BGPPeers have: no Service may use them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reconcilers.dialect import ClusterAddresses, ReservedAddresses
from resources.metallb.kinds import BGP_PEER
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.metallb.dialect import MetalLBDialect


def cluster_addresses(
    dialect: MetalLBDialect, snapshot: Snapshot, _node: str | None
) -> ClusterAddresses:
    """Return the cluster addresses of BGPPeers in the namespace: both ends of their sessions."""
    rows = dialect.tables.in_namespace(snapshot, BGP_PEER, dialect.options.namespace)
    own = [row.spec for row in rows]
    return ClusterAddresses(
        nodes=frozenset(spec.source_address for spec in own if spec.source_address),
        peers=frozenset(spec.peer_address for spec in own if spec.peer_address),
    )


RESERVED_ADDRESSES: Final = ReservedAddresses(cluster_addresses)
