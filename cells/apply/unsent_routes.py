"""The job that writes the routes that Established sessions cannot carry, for the intent's problems."""

from __future__ import annotations

from typing import Final

import structlog

from cells.hive.jobs import Jobs
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.speaker.events import SpeakerEvents
from reconcilers.intent.unsent_routes import unsent_routes, write_unsent_routes
from reconcilers.tables import IntentTables
from speaker.api import SpeakerPort
from statedb import Database

log = structlog.get_logger("waggle.apply")

INTERVAL_SECONDS: Final = 0.2
"""Between two readings of all sessions, at least."""
POLL_SECONDS: Final = 5.0
"""The number of routes changes without an event of the speaker."""


class UnsentRoutesLoop:
    """Reads the sessions after their events, and logs each obstacle once."""

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
        jobs.add("unsent-routes", self._run)

    async def _run(self) -> None:
        async def write(_: float | None) -> None:
            self.write()

        await run_rounds(self._signal, write, interval=INTERVAL_SECONDS, poll=POLL_SECONDS)

    def write(self) -> None:
        """Compare the sessions with the table, and write and log what differs."""
        rows = unsent_routes(self._speaker.peers())
        for row in write_unsent_routes(self._database, self._intent, rows):
            log.warning(
                "routes are not advertised",
                event_name="peer.routes_unsent",
                instance=row.instance,
                peer=row.peer,
                family=str(row.family),
                reason=row.reason,
            )
