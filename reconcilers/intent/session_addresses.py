"""The local addresses of sessions: the table that the compiler reads as addresses of this node.

The kernel chooses the local address of a session where no object sets one, and Node.status need not
have it. An address remains while the session is down: otherwise a Service with that address would be
advertised in each outage, and a router that uses the route could not reach the node to end it. It
goes with its peer.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconcilers.intent.service_addresses import martian
from reconcilers.intent_tables import IntentTables
from reconcilers.model import SessionAddress
from reconcilers.prefixes import host_route
from statedb import Database


class SessionAddresses:
    """Takes the local addresses of connections, and writes the new ones."""

    def __init__(self, database: Database, intent: IntentTables) -> None:
        self._database = database
        self._intent = intent
        self._noted: dict[tuple[str, str], tuple[str, bool]] = {}
        """By instance and peer, not written yet: the address, and whether the session is up."""

    def note(self, instance: str, peer: str, address: str, *, established: bool) -> bool:
        """Note the local address of a session; True if it is to be written.

        Before Established a connection is used only where no address of its peer is known: attempts
        that fail, each with another address, change nothing. Link-local and loopback addresses are
        never advertised for Services anyway, and are ignored.
        """
        if not established and (instance, peer) in self._noted:
            return False
        if not _may_be_advertised(address):
            return False
        self._noted[instance, peer] = (address, established)
        return True

    def restore(self, rows: Sequence[SessionAddress]) -> None:
        """Write the sessions' addresses of an earlier process, for peers without one.

        The peers may not be known yet; the compiler deletes the rows of others.
        """
        table = self._intent.session_addresses
        if not rows:
            return
        with self._database.write(table) as txn:
            for row in rows:
                if table.get(txn, (row.instance, row.peer)) is None:
                    table.upsert(txn, row)

    def write(self) -> None:
        """Write the noted local addresses of configured sessions, where they differ."""
        noted, self._noted = self._noted, {}
        tables, snapshot = self._intent, self._database.snapshot()
        rows = []
        for key, (address, established) in noted.items():
            known = tables.session_addresses.get(snapshot, key)
            if known is not None and (known.address == address or not established):
                continue
            if tables.peers.get(snapshot, key) is not None:
                rows.append(SessionAddress(*key, address))
        if not rows:
            return
        with self._database.write(tables.session_addresses) as txn:
            for row in rows:
                tables.session_addresses.upsert(txn, row)


def forget_session_addresses(database: Database, intent: IntentTables) -> None:
    """Delete the session addresses and next hops of peers that are no longer configured.

    In transactions of their own: that of a round of intent lasts for many turns of the loop, in which
    sessions get addresses.
    """
    snapshot = database.snapshot()
    for table in (intent.session_addresses, intent.next_hops):
        keys = [(row.instance, row.peer) for row in table.all(snapshot)]
        gone = [key for key in keys if intent.peers.get(snapshot, key) is None]
        if gone:
            with database.write(table) as txn:
                for key in gone:
                    table.delete(txn, key)


def _may_be_advertised(address: str) -> bool:
    """False for addresses that no Service may have: martians, and addresses with a zone."""
    return "%" not in address and martian(*host_route(address)) is None
