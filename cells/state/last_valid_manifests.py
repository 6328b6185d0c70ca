"""Keeps the last valid objects of each manifest on the node's disk, for a restart with a broken file.

Only where there is a state directory. Secrets are not written.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import structlog

from cells.hive import Health
from cells.hive.jobs import Jobs
from cells.hive.lifecycle import Lifecycle
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.state.state_files import LogLines, StateDirectory
from resources.manifests.last_valid import decode, encode
from resources.manifests.source import ManifestsSource
from resources.tables import Tables
from statedb import Database, Table

FILE: Final = "manifests"
PAUSE: Final = 30.0
"""Seconds between two writes at least; a crash loses the changes since the last one."""
SETTLE_TURNS: Final = 8
LINES: Final = LogLines(
    "waggle.manifests",
    "the last valid manifests",
    "manifests.last_valid_refused",
    "manifests.last_valid_failed",
)

log = structlog.get_logger(LINES.logger)


class LastValidObjects:
    """Reads the file before the first reading of the manifests, and writes it from then on."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        source: ManifestsSource,
        state_directory: StateDirectory | None,
        health: Health,
        lifecycle: Lifecycle,
        jobs: Jobs,
    ) -> None:
        file = None if state_directory is None else state_directory.file(FILE, LINES)
        if file is None:
            return
        self._file = file
        self._database = database
        self._tables = tables
        self._source = source
        self._health = health.scope("last-valid")
        self._written: tuple[int, ...] = ()
        self._unread: tuple[Table[Any], ...] = tables.resources
        """The tables that had not been filled at the last look; a filled table stays so."""
        lifecycle.append("manifests-last-valid", start=self._start, stop=self._stop)
        jobs.add("write-last-valid", self._run)

    async def _start(self) -> None:
        stored = await self._file.read(lambda octets: decode(octets, self._tables.manifest_kinds))
        if stored is not None:
            self._source.restore(stored.files)
            if stored.unread:
                log.warning(
                    "last valid objects are of another release and are not used",
                    event_name="manifests.last_valid_unread",
                    file=str(self._file.path),
                    reason="; ".join(stored.unread),
                )
        self._file.report(self._health)

    async def _stop(self) -> None:
        await self._write_changes()

    async def _run(self) -> None:
        signal = Signal(*(table.observable for table in self._tables.resources))

        async def run(_: float | None) -> None:
            if await self._write_changes():
                await asyncio.sleep(PAUSE)

        await run_rounds(signal, run, settle_turns=SETTLE_TURNS)

    async def _write_changes(self) -> bool:
        """Write the file if objects have changed; False if not, or before all have been read."""
        snapshot = self._database.snapshot()
        self._unread = tuple([t for t in self._unread if not t.initialized(snapshot)])
        if self._unread:
            return False
        revisions = tuple([table.revision(snapshot) for table in self._tables.resources])
        if revisions == self._written:
            return False
        if await self._file.write_in_turns(encode(self._source.kept())):
            self._written = revisions
        self._file.report(self._health)
        return True
