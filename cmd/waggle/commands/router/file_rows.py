"""The instance and the neighbours of a router's file as rows of the intent."""

from __future__ import annotations

from reconcilers.intent_tables import IntentTables
from reconcilers.model import Instance, Peer, PrefixRule
from resources.tables import Tables
from speaker.api import PeerConfig, Policy
from statedb import Database
from waggle.router_config import INSTANCE, Config


class FileRows:
    """A database with the tables of an agent, of which the file fills instances and peers."""

    def __init__(self) -> None:
        self.database = Database()
        self.tables = Tables(self.database)
        self.intent = IntentTables(self.database)

    def configure(self, config: Config) -> None:
        """Write the rows of a file; rows of former neighbours are deleted."""
        intent = self.intent
        instances, peers, next_hops = intent.instances, intent.peers, intent.next_hops
        rows = {peer.name: _row(peer) for peer in config.peers() if isinstance(peer, PeerConfig)}
        instance = Instance(INSTANCE, config.vrf, config.asn, config.router_id, dialect=INSTANCE)
        with self.database.write(instances, peers, next_hops) as txn:
            instances.upsert(txn, instance)
            for row in list(peers.all(txn)):
                if row.name not in rows:
                    peers.delete(txn, (row.instance, row.name))
                    next_hops.delete(txn, (row.instance, row.name))
            for row in rows.values():
                peers.upsert(txn, row)


def _row(peer: PeerConfig) -> Peer:
    """Return a neighbour with all that its BFD session and its routes in the kernel depend on."""
    return Peer(
        instance=INSTANCE,
        name=peer.name,
        address=peer.address,
        interface=peer.interface,
        peer_asn=peer.peer_asn,
        local_asn=peer.local_asn,
        local_address=peer.local_address,
        ebgp_multihop=peer.ebgp_multihop,
        bfd=peer.bfd,
        accept=_accepted(peer),
    )


def _accepted(peer: PeerConfig) -> tuple[PrefixRule, ...] | None:
    """Return what a neighbour's import policy names: the kernel has a default route if it is named."""
    if not isinstance(peer.import_, Policy):
        return () if peer.import_ == "none" else None
    named = [rule for term in peer.import_.terms for rule in term.match.prefixes or ()]
    return tuple(PrefixRule(rule.prefix, rule.ge, rule.le) for rule in named) or None
