"""The job that writes the local addresses of sessions for the intent, as sessions get them.

With a state directory the next process begins with these addresses: after a restart, too, no Service
has the address of a session whose router is down.
"""

from __future__ import annotations

from typing import Final

from cells.hive import Health
from cells.hive.jobs import Jobs
from cells.hive.lifecycle import Lifecycle
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.speaker.events import SpeakerEvents
from cells.state.state_files import Format, KeptValue, LogLines, StateDirectory
from reconcilers.intent.session_addresses import SessionAddresses
from reconcilers.intent_tables import IntentTables
from reconcilers.model import SessionAddress
from reconcilers.prefixes import host_route
from speaker.api import ESTABLISHED, Event, StateChanged
from statedb import Database

FILE: Final = "session-addresses.json"
LINES: Final = LogLines(
    "waggle.apply",
    "local addresses of sessions are not kept",
    "session-addresses.unusable",
    "session-addresses.unwritten",
)
Rows = tuple[SessionAddress, ...]
FORMAT: Final[Format[Rows]] = Format("waggle-session-addresses/1", "sessions", Rows)


class SessionAddressLoop:
    """Follows the events of sessions; a session with a known address writes nothing."""

    def __init__(
        self,
        database: Database,
        intent_tables: IntentTables,
        events: SpeakerEvents,
        directory: StateDirectory,
        health: Health,
        lifecycle: Lifecycle,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._table = intent_tables.session_addresses
        self._addresses = SessionAddresses(database, intent_tables)
        self._rows: Rows = ()
        """Of the table, sorted; rows of the former process until the first round."""
        self._revision = 0
        """Of the table, as of the last round."""
        self._kept = KeptValue(
            "session-addresses",
            directory.file(FILE, LINES),
            value=lambda: self._rows,
            encode=FORMAT.encode,
            take=self._take,
            health=health.scope("session-addresses-file"),
            lifecycle=lifecycle,
            jobs=jobs,
        )
        self._signal = Signal(self._table.observable)
        # From the event, and at once: a session is Established, and sends its table, soon after.
        events.observable.subscribe(self._note)
        jobs.add("session-addresses", self._run)

    def _take(self, octets: bytes) -> None:
        self._rows = decode(octets)

    def _note(self, event: Event) -> None:
        if not isinstance(event, StateChanged) or not event.local_address:
            return
        established = event.new == ESTABLISHED
        if self._addresses.note(
            event.instance, event.peer, event.local_address, established=established
        ):
            self._signal.raise_flag()

    async def _run(self) -> None:
        self._addresses.restore(self._rows)

        async def write(_: float | None) -> None:
            self._addresses.write()
            snapshot = self._database.snapshot()
            revision, former = self._table.revision(snapshot), self._revision
            self._revision = revision
            # Most events of sessions write nothing.
            if revision == former:
                return
            rows = tuple(sorted(self._table.all(snapshot)))
            if rows != self._rows:
                self._rows = rows
                self._kept.check()

        await run_rounds(self._signal, write)


def decode(octets: bytes) -> Rows:
    """Decode a file. Raises ValueError for everything that `FORMAT.encode` did not write."""
    rows = FORMAT.decode(octets)
    for row in rows:
        try:
            host_route(row.address)
        except OSError:
            raise ValueError(f"it has {row.address[:64]!r} as an address") from None
    return rows
