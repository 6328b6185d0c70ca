"""The addresses of nodes and peers that FRRConfigurations have: no Service may use them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from reconcilers.dialect import ClusterAddresses, ReservedAddresses
from reconcilers.frrk8s.field_values import is_interface
from resources.frrk8s.frrconfiguration import FRRConfiguration
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.frrk8s.dialect import Frrk8sDialect


def cluster_addresses(
    dialect: Frrk8sDialect, snapshot: Snapshot, _node: str | None
) -> ClusterAddresses:
    """Return the cluster addresses of FRRConfigurations in effect: both ends of their sessions.

    Objects of the namespace; a source address that is the name of an interface is ignored.
    """
    return dialect.addresses.of(snapshot, dialect.options.namespace)


def addresses_of_rows(rows: Iterable[FRRConfiguration], namespace: str) -> ClusterAddresses:
    """Return the cluster addresses of FRRConfigurations of a namespace: both ends of sessions."""
    own = [row.spec.bgp for row in rows if row.metadata.namespace == namespace]
    neighbors = [neighbor for bgp in own for router in bgp.routers for neighbor in router.neighbors]
    return ClusterAddresses(
        nodes=frozenset(
            neighbor.sourceaddress
            for neighbor in neighbors
            if neighbor.sourceaddress and not is_interface(neighbor.sourceaddress)
        ),
        peers=frozenset([neighbor.address for neighbor in neighbors if neighbor.address]),
    )


RESERVED_ADDRESSES: Final = ReservedAddresses(cluster_addresses)
