"""Peers in requests: by their own names, their addresses, or the objects that configure them."""

from __future__ import annotations

from cells.api.resource import NotFoundError
from cells.serve.routing import Chosen
from reconcilers.intent.peer_names import chosen_peer, named_by_objects
from reconcilers.intent_tables import IntentTables
from statedb import Database


class PeerNames:
    """The names of peers in the intent."""

    def __init__(self, database: Database, intent: IntentTables) -> None:
        self._database = database
        self._intent = intent

    def chosen(self, peer: str | None, instance: str | None) -> Chosen:
        """Return whether a peer is the wanted one, also by the object that configures it."""
        return chosen_peer(self._intent.peers.all(self._database.snapshot()), peer, instance)

    def check(self, peer: str | None, instance: str | None) -> None:
        """Raise `NotFoundError` for a peer or instance that is neither configured nor rejected."""
        snapshot = self._database.snapshot()
        unconfigured = [
            p.unconfigured for p in self._intent.problems.all(snapshot) if p.unconfigured
        ]
        peers = list(self._intent.peers.all(snapshot))
        instances = {row.name for row in self._intent.instances.all(snapshot)}
        instances |= {names[0] for names in unconfigured}
        if instance is not None and instance not in instances:
            raise NotFoundError.of_name("instance", instance, instances)
        known = {row.name for row in peers} | {row.address for row in peers}
        known |= {names[1] for names in unconfigured if len(names) > 1}
        known |= {name for name, named in named_by_objects(peers).items() if len(named) == 1}
        if peer is not None and peer not in known:
            raise NotFoundError.of_name("peer", peer, known)
