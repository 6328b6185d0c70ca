"""Whether an object refers to the node's kernel: to a VRF, or to an interface."""

from __future__ import annotations

from typing import Final

from reconcilers.dialect import Dialect, HostNeeds
from reconcilers.frrk8s.field_values import is_interface
from resources.frrk8s.kinds import FRR_CONFIGURATION
from statedb import Snapshot


def is_host_needed(dialect: Dialect, snapshot: Snapshot, _node: str) -> bool:
    """True if an FRRConfiguration needs the host: it has a VRF, or an interface as source address."""
    for row in dialect.tables.of(FRR_CONFIGURATION).all(snapshot):
        for router in row.spec.bgp.routers:
            if router.vrf not in ("", "default"):
                return True
            sources = [
                neighbor.sourceaddress for neighbor in router.neighbors if neighbor.sourceaddress
            ]
            if any(map(is_interface, sources)):
                return True
    return False


HOST_NEEDS: Final = HostNeeds(is_host_needed)
