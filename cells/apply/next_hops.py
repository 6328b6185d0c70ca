"""Writes the next hops of received routes for the intent: no Service may use them.

Those of a session that is down remain, until the peer is removed or has others: a Service with the
address of a router would otherwise be advertised in each outage.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconcilers.model import NextHops
from reconcilers.tables import IntentTables
from speaker.api import PeerStatus
from statedb import Database


class NextHopWriter:
    """Writes the rows that differ from the status of the sessions."""

    def __init__(self, database: Database, intent_tables: IntentTables) -> None:
        self._database = database
        self._intent = intent_tables

    def write(self, statuses: Iterable[PeerStatus]) -> None:
        """Write the next hops of configured peers, in one transaction, where they differ."""
        tables, snapshot = self._intent, self._database.snapshot()
        rows = []
        for status in statuses:
            key = (status.instance, status.name)
            if not status.next_hops or tables.peers.get(snapshot, key) is None:
                continue
            row = NextHops(*key, status.next_hops)
            if tables.next_hops.get(snapshot, key) != row:
                rows.append(row)
        if not rows:
            return
        with self._database.write(tables.next_hops) as txn:
            for row in rows:
                tables.next_hops.upsert(txn, row)
