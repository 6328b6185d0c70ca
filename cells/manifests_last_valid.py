"""Keeps the last valid objects of each manifest on the node's disk, for a restart with a broken file.

Only where there is a state directory. Secrets are not written.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Final

import structlog

from cells.claims import StateDirectory
from cells.hive import Health
from cells.hive.jobs import Jobs
from cells.hive.lifecycle import Lifecycle
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from resources.manifests import ManifestsSource
from resources.manifests.last_valid import decode, encode
from resources.snapshot import SnapshotError, read, write
from resources.tables import Tables
from statedb import Database

FILE: Final = "manifests"
PAUSE: Final = 30.0
"""Seconds between two writes at least; a crash loses the changes since the last one."""
SETTLE_TURNS: Final = 8

log = structlog.get_logger("waggle.manifests")


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
        self._path: Path | None = None
        if state_directory is None or state_directory.path is None:
            return
        self._path = state_directory.path / FILE
        self._database = database
        self._tables = tables
        self._source = source
        self._health = health.scope("last-valid")
        self._written: tuple[int, ...] = ()
        self._lock = threading.Lock()
        lifecycle.append("manifests-last-valid", start=self._start, stop=self._stop)
        jobs.add("write-last-valid", self._run)

    async def _start(self) -> None:
        assert self._path is not None  # noqa: S101 - else this is not called
        try:
            octets = await asyncio.to_thread(read, self._path)
            files = {} if octets is None else decode(octets, self._tables.kinds)
        except (SnapshotError, OSError) as error:
            self._fail("is not used", "manifests.last_valid_refused", error)
            return
        self._source.restore(files)
        self._health.ok(f"kept in {self._path}")

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
        assert self._path is not None  # noqa: S101 - else this is not called
        snapshot = self._database.snapshot()
        tables = self._tables.resources
        revisions = tuple(table.revision(snapshot) for table in tables)
        complete = all(table.initialized(snapshot) for table in tables)
        if not complete or revisions == self._written:
            return False
        pieces: list[bytes] = []
        for piece in encode(self._source.kept()):
            pieces.append(piece)
            await asyncio.sleep(0)
        try:
            await asyncio.to_thread(self._replace, pieces)
        except OSError as error:
            self._fail("cannot be written", "manifests.last_valid_failed", error)
            return True
        self._written = revisions
        self._health.ok(f"kept in {self._path}")
        return True

    def _replace(self, pieces: list[bytes]) -> None:
        assert self._path is not None  # noqa: S101 - else nothing is written
        # A stop cancels the job, but not a write that its thread has begun.
        with self._lock:
            write(self._path, pieces)

    def _fail(self, what: str, event: str, error: SnapshotError | OSError) -> None:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        trouble = f"{self._path} {what}: {reason}"
        self._health.degraded(trouble)
        log.warning("the last valid manifests", event_name=event, reason=trouble)
