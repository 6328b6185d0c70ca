"""The job that writes the local addresses of sessions for the intent, as sessions get them."""

from __future__ import annotations

from cells.hive.jobs import Jobs
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.speaker.events import SpeakerEvents
from reconcilers.intent.session_addresses import SessionAddresses
from reconcilers.tables import IntentTables
from speaker.api import ESTABLISHED, Event, StateChanged
from statedb import Database


class SessionAddressLoop:
    """Follows the events of sessions; a session with a known address writes nothing."""

    def __init__(
        self, database: Database, intent_tables: IntentTables, events: SpeakerEvents, jobs: Jobs
    ) -> None:
        self._addresses = SessionAddresses(database, intent_tables)
        self._signal = Signal()
        # From the event, and at once: a session is Established, and sends its table, soon after.
        events.observable.subscribe(self._take)
        jobs.add("session-addresses", self._run)

    def _take(self, event: Event) -> None:
        if not isinstance(event, StateChanged) or not event.local_address:
            return
        established = event.new == ESTABLISHED
        if self._addresses.note(
            event.instance, event.peer, event.local_address, established=established
        ):
            self._signal.raise_flag()

    async def _run(self) -> None:
        async def write(_: float | None) -> None:
            self._addresses.write()

        await run_rounds(self._signal, write)
