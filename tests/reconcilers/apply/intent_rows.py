"""Intent written by hand, applied to the real engine, with a router at the other end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from reconcilers.intent_tables import IntentTables
from reconcilers.model import Attributes, Instance, Peer, Route
from resources.kind import Kind
from resources.row_updates import replace_all
from resources.tables import Tables
from speaker.api import PeerConfig
from speaker.nlri import prefix_to_wire
from statedb import Database
from tests.speaker.network import Host, Network
from tests.support.engine_speaker import EngineSpeaker
from tests.support.speaker_reconcilers import runner

AGENT, ROUTER = "192.0.2.1", "192.0.2.9"
INSTANCE = Instance("i", None, 65001, AGENT)
PEER = Peer("i", "p", ROUTER, None, 65010, route_set="set")


class Rows:
    """The intent of one node, and what applies it."""

    def __init__(self, kinds: Iterable[Kind[Any]] = ()) -> None:
        """``kinds`` are the kinds of objects with passwords."""
        self.db = Database()
        self.resources = Tables(self.db, kinds)
        self.intent = IntentTables(self.db)
        self.network = Network()
        self.speaker = EngineSpeaker(self.network)
        self.runner = runner(self.db, self.intent, self.resources, self.speaker)
        self.now = 0.0

    def apply(self, instances: Iterable[Instance], peers: Iterable[Peer]) -> None:
        """Write the rows in place of all others, and run the reconcilers."""
        with self.db.write(self.intent.instances, self.intent.peers) as txn:
            replace_all(txn, self.intent.instances, instances)
            replace_all(txn, self.intent.peers, peers)
        self.run()

    def run(self) -> None:
        """Run the reconcilers; no object may fail."""
        self.now += 60
        self.runner.run(self.now)
        failed = [
            row for row in self.intent.reconcile_statuses.all(self.db.snapshot()) if row.error
        ]
        assert failed == []
        self.network.run(0.5)

    def put(self, kind: Kind[Any], value: dict[str, object]) -> None:
        """Write one object."""
        table = self.resources.of(kind)
        with self.db.write(table) as txn:
            table.upsert(txn, kind.decode(value))

    def route(self, *prefixes: str, route_set: str = "set", **attributes: Any) -> None:  # noqa: ANN401
        """Write routes of a route set."""
        with self.db.write(self.intent.routes) as txn:
            for prefix in prefixes:
                row = Route(route_set, *prefix_to_wire(prefix), Attributes(**attributes), ())
                self.intent.routes.upsert(txn, row)

    def router(self, **settings: object) -> Host:
        """Add the router at the other end of the session, and bring the session up."""
        host = self.network.host("router", ROUTER, 65010)
        values: dict[str, object] = {"import_": "all", "export": "local", **settings}
        host.peer(PeerConfig(name="agent", address=AGENT, peer_asn=65001, **values))  # type: ignore[arg-type]
        self.network.run(5)
        assert [status.established for status in self.speaker.peers()] == [True]
        return host


def changed(peer: Peer = PEER, **fields: object) -> Peer:
    """Return a peer with other fields."""
    return replace(peer, **fields)
