"""The addresses of peers that BGPPolicies have, and of Egresses: no Service may use them. Pure."""

from __future__ import annotations

from typing import Final

from reconcilers.dialect import ClusterAddresses, Dialect, ReservedAddresses
from resources.antrea.kinds import BGP_POLICY, EGRESS
from statedb import Snapshot


def cluster_addresses(dialect: Dialect, snapshot: Snapshot, _node: str | None) -> ClusterAddresses:
    """Return the peers' addresses of all BGPPolicies, and the addresses of Egresses.

    Agents alone read Egresses, of all nodes. Replies to a Pod would go to the Service of another node.
    """
    tables = dialect.tables
    rows = tables.of(BGP_POLICY).all(snapshot)
    egresses = tables.of(EGRESS).all(snapshot) if EGRESS in tables.kinds else ()
    return ClusterAddresses(
        nodes=frozenset(row.status.egress_ip for row in egresses if row.status.egress_ip),
        peers=frozenset(peer.address for row in rows for peer in row.spec.bgp_peers),
    )


RESERVED_ADDRESSES: Final = ReservedAddresses(cluster_addresses, (EGRESS,))
