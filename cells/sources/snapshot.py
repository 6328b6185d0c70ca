"""The snapshot cell: the last known objects on the node's disk, for a start without an API server.

The start reads the file. Its objects are used only when the API server has not answered for a while;
its lists are compared with them. From then on the file follows the tables. It never contains Secrets,
so a session with a password waits for the API server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import structlog

from cells.hive import Health, Wiring
from cells.hive.jobs import Jobs
from cells.hive.lifecycle import Lifecycle
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.options import SnapshotOptions
from cells.state.node import ThisNode
from cells.state.state_files import LogLines, StateFile
from resources import metav1
from resources.core.kinds import SECRET
from resources.kubernetes import KubernetesSource, Reading
from resources.snapshot_codec import Snapshot, decode, encode
from resources.state_file import StateFileError
from resources.tables import Tables
from statedb import Database, Table

PAUSE: Final = 30.0
"""Seconds between two writes at least; a crash loses the changes since the last one."""
SETTLE_TURNS: Final = 8
EVERY: Final = 3600.0
"""Seconds between two writes at most: without changes the file's time is renewed."""

LINES: Final = LogLines(
    "waggle.snapshot", "the snapshot failed", "snapshot.refused", "snapshot.failed"
)
_NO_ANSWER: Final = "no answer from the API server: the objects"

log = structlog.get_logger("waggle.snapshot")


class SnapshotFile:
    """Reads the file at the start, and writes it from then on."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        source: KubernetesSource,
        reading: Reading,
        node: ThisNode,
        options: SnapshotOptions,
        health: Health,
        lifecycle: Lifecycle,
        jobs: Jobs,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = StateFile(Path(options.file or ""), LINES)
        self._options = options
        self._database = database
        self._tables = tables
        self._source = source
        self._kinds = reading.kinds.without(SECRET)
        self._waiting: tuple[Table[Any], ...] = tuple(tables.of(kind) for kind in self._kinds)
        """The tables that had not been filled at the last look; a filled table stays so."""
        self._node = node.name
        self._health = health
        self._clock = clock
        self._confirmed = 0.0
        """Unix time at which the API server last confirmed the tables; 0 for never."""
        self._unread: tuple[str, ...] = ()
        """Objects of the file that this release cannot read, by kind, with the reason."""
        self._resumed = False
        self._written: tuple[int, ...] = ()
        """The revisions of the tables that are in the file."""
        self._source.statuses.subscribe(lambda _: self._report())
        lifecycle.append("snapshot", start=self._start, stop=self._stop)
        jobs.add("resume", self._resume)
        jobs.add("write", self._keep)

    # Reading

    async def _start(self) -> None:
        stored = await self._file.read(self._decode)
        if stored is not None:
            self._confirmed = stored.confirmed
            self._unread = stored.unread
            self._source.restore(stored.rows)
            if stored.unread:
                log.warning(
                    "objects of the snapshot are of another release and are not used",
                    event_name="snapshot.unread",
                    file=str(self._file.path),
                    reason="; ".join(stored.unread),
                )
        self._report()

    def _decode(self, octets: bytes) -> Snapshot:
        stored = decode(octets, self._kinds)
        if stored.node != self._node:
            raise StateFileError(f"it belongs to the node {stored.node[:64]!r}")
        age = self._clock() - stored.confirmed
        if age > self._options.max_age_hours * 3600:
            raise StateFileError(f"it is {age / 3600:.0f} hours old")
        return stored

    async def _resume(self) -> None:
        await asyncio.sleep(self._options.after_seconds)
        names = self._source.use_restored() if self._confirmed else ()
        if names:
            self._resumed = True
            self._report()
            log.warning(
                "continuing from the snapshot",
                event_name="snapshot.resumed",
                file=str(self._file.path),
                confirmed=metav1.timestamp(self._confirmed),
                feeds=", ".join(names),
            )

    # Writing

    async def _keep(self) -> None:
        tables = [self._tables.of(kind) for kind in self._kinds]
        signal = Signal(*(table.observable for table in tables))
        await run_rounds(signal, self._write_changes, settle_turns=SETTLE_TURNS, poll=EVERY)

    async def _write_changes(self, _: float | None) -> float | None:
        if not self._complete:
            return PAUSE
        await self._write()
        await asyncio.sleep(PAUSE)
        return None

    async def _stop(self) -> None:
        if self._complete and self._revisions != self._written:
            await self._write()

    @property
    def _complete(self) -> bool:
        """Whether every kind has been read once, and the API server has confirmed it at some time."""
        snapshot = self._database.snapshot()
        self._waiting = tuple([t for t in self._waiting if not t.initialized(snapshot)])
        # A Secret, which is not in the file, may still be waited for.
        return not self._waiting and (self._confirmed > 0 or self._source.current)

    @property
    def _revisions(self) -> tuple[int, ...]:
        snapshot = self._database.snapshot()
        return tuple(self._tables.of(kind).revision(snapshot) for kind in self._kinds)

    async def _write(self) -> None:
        if self._source.current:
            self._confirmed = self._clock()
        snapshot, revisions = self._database.snapshot(), self._revisions
        rows = {kind.name: self._tables.of(kind).all(snapshot) for kind in self._kinds}
        if await self._file.write_in_turns(encode(self._node, self._confirmed, rows)):
            self._written = revisions
        self._report()

    # Reporting

    def _report(self) -> None:
        time_ = metav1.timestamp(self._confirmed)
        behind = self._source.behind
        if self._resumed and behind:
            answers = len(behind) < len(self._source.reflectors)
            what = f"of {', '.join(behind)} the objects" if answers else _NO_ANSWER
            unread = f"; not used: {'; '.join(self._unread)}" if self._unread else ""
            self._health.degraded(f"{what} of {time_} are used{unread}")
        elif self._file.trouble:
            self._health.degraded(self._file.trouble)
        elif self._written:
            self._health.ok(f"{self._file.path} has the objects of {time_}")
        else:
            self._health.ok("nothing has been written yet")


WIRING = Wiring(
    invokes=(SnapshotFile,),
)
