"""The job that reads the status of all sessions, for rows of the intent that follow from it.

The number of routes and their next hops change without an event of the speaker. One job reads for
all, so that an idle agent sleeps.
"""

from __future__ import annotations

from typing import Final

from cells.apply.next_hops import NextHopWriter
from cells.apply.unsent_routes import UnsentRoutesWriter
from cells.hive.jobs import Jobs
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.speaker.events import SpeakerEvents
from speaker.api import SpeakerPort

INTERVAL_SECONDS: Final = 0.2
"""Between two readings, at least."""
POLL_INTERVAL_SECONDS: Final = 10.0
"""Between two readings without an event, at most."""


class SessionReadings:
    """Reads the sessions at the start, after their events, and now and then."""

    def __init__(
        self,
        speaker: SpeakerPort,
        events: SpeakerEvents,
        next_hops: NextHopWriter,
        unsent_routes: UnsentRoutesWriter,
        jobs: Jobs,
    ) -> None:
        self._speaker = speaker
        self._signal = Signal(events.observable)
        self._writers = (next_hops, unsent_routes)
        jobs.add("session-readings", self._run)

    async def _run(self) -> None:
        async def read(_: float | None) -> None:
            statuses = self._speaker.peers()
            for writer in self._writers:
                writer.write(statuses)

        await run_rounds(self._signal, read, interval=INTERVAL_SECONDS, poll=POLL_INTERVAL_SECONDS)
