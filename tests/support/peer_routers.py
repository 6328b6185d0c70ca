"""Routers on wires in memory, one for each peer that an agent is configured with."""

from __future__ import annotations

from reconcilers.intent_tables import IntentTables
from speaker.api import PeerConfig
from statedb import Snapshot
from tests.speaker.network import EXTENDED_NEXT_HOP, Host, Network


def add_routers(
    routers: dict[str, Host],
    network: Network,
    intent: IntentTables,
    snapshot: Snapshot,
    agent: str,
    *,
    extended_next_hop: bool = True,
) -> None:
    """Add a router for each peer that has an address and none yet; ``agent`` is the agent's address."""
    for row in intent.peers.all(snapshot):
        if row.address is None or row.address in routers:
            continue
        instance = intent.instances.get(snapshot, row.instance)
        assert instance is not None
        assert isinstance(row.peer_asn, int)
        host = network.host(row.address, row.address, row.peer_asn)
        host.withheld = () if extended_next_hop else (EXTENDED_NEXT_HOP,)
        host.peer(
            PeerConfig(
                name="agent",
                address=agent,
                peer_asn=instance.local_asn,
                import_="all",
                families=row.families,
            )
        )
        routers[row.address] = host
