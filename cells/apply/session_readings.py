"""The job that reads the status of all sessions, for rows of the intent that follow from it.

The number of routes and their next hops change without an event of the speaker. One job reads for
all, so that an idle agent sleeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import structlog

from cells.hive.jobs import Jobs
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.speaker.events import SpeakerEvents
from reconcilers.intent.unsent_routes import unsent_routes, write_unsent_routes
from reconcilers.intent_tables import IntentTables
from reconcilers.model import NextHops
from speaker.api import PeerStatus, SpeakerPort
from statedb import Database

INTERVAL_SECONDS: Final = 0.2
"""Between two readings, at least."""
POLL_INTERVAL_SECONDS: Final = 10.0
"""Between two readings without an event, at most."""


class StatusWriter(Protocol):
    """Writes rows that follow from the status of all sessions."""

    def write(self, statuses: Sequence[PeerStatus]) -> None:
        """Write the rows that differ."""


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


class SessionReadings:
    """Reads the sessions at the start, after their events, and now and then."""

    def __init__(
        self,
        speaker: SpeakerPort,
        events: SpeakerEvents,
        writers: Sequence[StatusWriter],
        jobs: Jobs,
    ) -> None:
        self._speaker = speaker
        self._signal = Signal(events.observable)
        self._writers = writers
        jobs.add("session-readings", self._run)

    async def _run(self) -> None:
        async def read(_: float | None) -> None:
            statuses = self._speaker.peers()
            for writer in self._writers:
                writer.write(statuses)

        await run_rounds(self._signal, read, interval=INTERVAL_SECONDS, poll=POLL_INTERVAL_SECONDS)
