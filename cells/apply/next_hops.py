"""The job that writes the next hops of received routes for the intent: no Service may use them.

Those of a session that is down remain, until the peer is removed or has others: a Service with the
address of a router would otherwise be advertised in each outage.
"""

from __future__ import annotations

from typing import Final

from cells.hive.jobs import Jobs
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.speaker.events import SpeakerEvents
from reconcilers.model import NextHops
from reconcilers.tables import IntentTables
from speaker.api import SpeakerPort
from statedb import Database

POLL_INTERVAL_SECONDS: Final = 5.0
"""Next hops emit no event: they come with routes."""
LEAST_SECONDS: Final = 1.0


class NextHopLoop:
    """Reads the status of all sessions, and writes what differs."""

    def __init__(
        self,
        database: Database,
        intent_tables: IntentTables,
        speaker: SpeakerPort,
        events: SpeakerEvents,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._intent = intent_tables
        self._speaker = speaker
        self._signal = Signal(events.observable)
        jobs.add("next-hops", self._run)

    async def _run(self) -> None:
        async def write(_: float | None) -> None:
            self.write()

        await run_rounds(self._signal, write, interval=LEAST_SECONDS, poll=POLL_INTERVAL_SECONDS)

    def write(self) -> None:
        """Write the next hops of configured peers, in one transaction, where they differ."""
        tables, snapshot = self._intent, self._database.snapshot()
        rows = []
        for status in self._speaker.peers():
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
