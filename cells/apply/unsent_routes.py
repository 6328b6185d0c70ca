"""Writes the routes that Established sessions cannot carry, for the intent's problems."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from reconcilers.intent.unsent_routes import unsent_routes, write_unsent_routes
from reconcilers.tables import IntentTables
from speaker.api import PeerStatus
from statedb import Database

log = structlog.get_logger("waggle.apply")


class UnsentRoutesWriter:
    """Writes the rows that differ from the status of the sessions, and logs each obstacle once."""

    def __init__(self, database: Database, intent_tables: IntentTables) -> None:
        self._database = database
        self._intent = intent_tables

    def write(self, statuses: Sequence[PeerStatus]) -> None:
        """Compare the sessions with the table, and write and log what differs."""
        rows = unsent_routes(statuses)
        for row in write_unsent_routes(self._database, self._intent, rows):
            log.warning(
                "routes are not advertised",
                event_name="peer.routes_unsent",
                instance=row.instance,
                peer=row.peer,
                family=str(row.family),
                reason=row.reason,
            )
