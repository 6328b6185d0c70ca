"""A whole agent without I/O: tables, rounds of intent and apply, and an engine on wires in memory.

Everything that a change costs can be counted: objects that were compiled, rows that were written,
octets that were sent to each router.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.dialect import Dialect
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.intent.compiler import IntentCompiler
from reconcilers.intent.render import document
from reconcilers.intent.summary import Summary
from reconcilers.intent_tables import IntentTables
from reconcilers.metallb.dialect import MetalLBDialect
from resources.kind import Kinds
from resources.option_declarations import Options
from resources.tables import Tables
from statedb import Database, Table
from tests.speaker.network import Host, Network
from tests.support.engine_speaker import EngineSpeaker
from tests.support.peer_routers import add_routers
from tests.support.speaker_reconcilers import runner

ADDRESS = "192.0.2.1"
UPDATE, KEEPALIVE = 2, 4
"""Types of messages (RFC 4271 section 4.1)."""
DIALECTS: tuple[type[Dialect], ...] = (Frrk8sDialect, MetalLBDialect)
CILIUM: tuple[type[Dialect], ...] = (CiliumDialect,)


class Work(NamedTuple):
    """What one change has cost."""

    summary: Summary
    rows: Mapping[str, int]
    """Rows of the intent that were written or deleted, by table; of tables with any."""
    calls: int
    """Of the speaker."""
    updates: Mapping[str, int]
    """UPDATE messages that each router was sent, by address; of routers that were sent any."""
    octets: Mapping[str, int]
    """All octets without KEEPALIVEs, likewise."""


class AgentInMemory:
    """One node; ``options`` are the dialects', by name."""

    def __init__(
        self,
        node: str,
        dialects: Iterable[type[Dialect]] = DIALECTS,
        options: Mapping[str, Options] | None = None,
        address: str = ADDRESS,
    ) -> None:
        self.node = node
        self._address = address
        self.db = Database()
        types = list(dialects)
        self.kinds = Kinds(*(kind.kinds for kind in types))
        self.tables = Tables(self.db, self.kinds)
        self.intent = IntentTables(self.db)
        given = options or {}
        self.dialects = [one(self.tables, given.get(one.name, one.options_type())) for one in types]
        self.compiler = IntentCompiler(self.db, self.tables, self.intent, self.dialects, node)
        self.network = Network()
        self.speaker = EngineSpeaker(self.network, address)
        self.runner = runner(self.db, self.intent, self.tables, self.speaker)
        self.routers: dict[str, Host] = {}
        db, intent = self.db, self.intent
        self._tables: tuple[Table[Any], ...] = (
            intent.instances,
            intent.peers,
            intent.routes,
            intent.conflicting_routes,
            intent.problems,
            intent.conditions,
            intent.generated,
        )
        self._changes = {table.name: table.changes(db) for table in self._tables}

    def write(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Write objects to the tables as a source does: equal rows are not written."""
        by_kind: dict[str, list[Any]] = {}
        for value in objects:
            by_kind.setdefault(str(value["kind"]), []).append(value)
        for name, values in by_kind.items():
            kind = self.kinds.named(name)
            assert kind is not None, name
            table = self.tables.of(kind)
            rows = [kind.decode(value) for value in values]
            with self.db.write(table) as txn:
                for row in rows:
                    if table.get(txn, row.key) != row:
                        table.upsert(txn, row)

    def remove(self, value: Mapping[str, Any]) -> None:
        """Delete an object."""
        kind = self.kinds.named(str(value["kind"]))
        assert kind is not None
        metadata, table = value["metadata"], self.tables.of(kind)
        with self.db.write(table) as txn:
            table.delete(txn, (metadata.get("namespace", ""), metadata["name"]))

    def round(self) -> Summary:
        """Compile the intent, and apply it; the speaker's messages are on the wires then."""
        summary = self.compiler.run()
        self.runner.run(self.network.now)
        return summary

    def work(self, *objects: Mapping[str, Any], removed: Iterable[Mapping[str, Any]] = ()) -> Work:
        """Write objects, run a round, and count what it has cost."""
        self.write(objects)
        for value in removed:
            self.remove(value)
        return self.settle()

    def settle(self) -> Work:
        """Run a round, deliver all messages, and count what it has cost."""
        self.count_rows()
        self.speaker.take()
        self.speaker.host.writes.clear()
        summary = self.round()
        calls = len(self.speaker.take())
        self.network.run(1)
        octets: dict[str, bytes] = {}
        addresses = {made.connection: made.address for made in self.speaker.host.connects}
        for write in self.speaker.host.writes:
            address = addresses[write.connection]
            octets[address] = octets.get(address, b"") + b"".join(write.parts)
        sent = {address: found for address, of in octets.items() if (found := _messages(of))}
        updates = {
            address: sum(kind == UPDATE for kind, _ in found) for address, found in sent.items()
        }
        return Work(
            summary,
            self.count_rows(),
            calls,
            {address: count for address, count in updates.items() if count},
            {address: sum(length for _, length in found) for address, found in sent.items()},
        )

    def rows(self) -> dict[tuple[str, Any], Any]:
        """Return the rows of the intent by table and key."""
        snapshot = self.db.snapshot()
        return {
            (table.name, next(iter(table.primary.keys(row)))): row
            for table in self._tables
            for row in table.all(snapshot)
        }

    def count_rows(self) -> dict[str, int]:
        """Count the rows of each table of the intent that changed since the last call."""
        snapshot = self.db.snapshot()
        found = {name: len(list(it.next(snapshot))) for name, it in self._changes.items()}
        return {name: count for name, count in found.items() if count}

    def connect(self, seconds: float = 5, *, extended_next_hop: bool = True) -> None:
        """Add a router for each peer that has none, and let the sessions come up.

        ``extended_next_hop``: whether the routers accept IPv6 next hops of IPv4 prefixes (RFC 8950).
        """
        add_routers(
            self.routers,
            self.network,
            self.intent,
            self.db.snapshot(),
            self._address,
            extended_next_hop=extended_next_hop,
        )
        self.network.run(seconds)

    def render(self) -> dict[str, Any]:
        """See the intent as ``waggle render`` shows it."""
        return document(self.db.snapshot(), self.node, self.tables, self.intent)


def _messages(octets: bytes) -> list[tuple[int, int]]:
    """Return type and length of whole messages but KEEPALIVEs (RFC 4271 section 4.1)."""
    found = []
    at = 0
    while at < len(octets):
        length = int.from_bytes(octets[at + 16 : at + 18], "big")
        if octets[at + 18] != KEEPALIVE:
            found.append((octets[at + 18], length))
        at += length
    return found
