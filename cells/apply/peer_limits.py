"""The limits of what peers are sent: the limits that peers announce, warnings, and metrics."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog
from prometheus_client.core import GaugeMetricFamily
from reactivex import operators

from cells.hive import Health
from cells.hive.jobs import Jobs
from cells.hive.lifecycle import Lifecycle
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.intent.cell import IntentLoop
from cells.speaker.events import SpeakerEvents
from cells.state.state_files import Format, KeptValue, LogLines, StateDirectory
from reconcilers.intent.learned_limits import LearnedLimits
from reconcilers.intent.peer_limits import WARNING_PERCENT
from reconcilers.intent_tables import IntentTables
from reconcilers.model import AdvertiseLimit, LearnedLimit
from speaker.api import Event, StateChanged
from statedb import Database

log = structlog.get_logger("waggle.apply")


FILE: Final = "learned-limits.json"
LINES: Final = LogLines(
    "waggle.apply",
    "limits that peers have made known are not kept",
    "learned-limits.unusable",
    "learned-limits.unwritten",
)
Rows = tuple[LearnedLimit, ...]
FORMAT: Final[Format[Rows]] = Format("waggle-learned-limits/1", "limits", Rows)


class LearnedLimitLoop:
    """The job that writes learned limits, keeps them over a restart, and lifts them in time.

    Follows the events of sessions; a session without a limit writes nothing.
    """

    def __init__(
        self,
        database: Database,
        intent_tables: IntentTables,
        intent: IntentLoop,
        events: SpeakerEvents,
        directory: StateDirectory,
        health: Health,
        lifecycle: Lifecycle,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._intent = intent
        self._table = intent_tables.learned_limits
        self._changes = self._table.changes(database)
        self._limits = LearnedLimits(database, intent_tables, intent.options)
        self._rows: Rows = ()
        """Of the table, sorted; rows of the former process until the first round."""
        self._kept = KeptValue(
            "learned-limits",
            directory.file(FILE, LINES),
            value=lambda: self._rows,
            encode=FORMAT.encode,
            take=self._take,
            health=health.scope("learned-limits-file"),
            lifecycle=lifecycle,
            jobs=jobs,
        )
        # Of the intent only the first complete round: limits depend on the peers.
        complete = intent.done.pipe(operators.filter(lambda _: intent.complete), operators.take(1))
        self._signal = Signal(intent_tables.peers.observable, complete)
        # At once: the peer may accept the next session soon after.
        events.observable.subscribe(self._note)
        jobs.add("learned-limits", self._run)

    def _take(self, octets: bytes) -> None:
        self._rows = FORMAT.decode(octets)

    def _note(self, event: Event) -> None:
        if not isinstance(event, StateChanged):
            return
        if self._limits.note(event, asyncio.get_running_loop().time()):
            self._signal.raise_flag()

    async def _run(self) -> None:
        if self._rows:
            self._limits.restore(self._rows)

        async def write(_: float | None) -> float | None:
            if not self._intent.complete:
                return None
            pause = self._limits.write(asyncio.get_running_loop().time())
            snapshot = self._database.snapshot()
            changes = list(self._changes.next(snapshot))
            for change in changes:
                self._report(change.row, lifted=change.deleted)
            if changes:
                self._rows = tuple(sorted(self._table.all(snapshot)))
                self._kept.check()
            return pause

        await run_rounds(self._signal, write)

    def _report(self, row: LearnedLimit, *, lifted: bool) -> None:
        log.warning(
            "limit of a peer is lifted" if lifted else "peer accepts fewer prefixes",
            event_name="peer.limit_lifted" if lifted else "peer.limit_learned",
            instance=row.instance,
            peer=row.peer,
            family=str(row.family),
            limit=row.limit,
        )


class PeerLimitReport:
    """Logs limits that are nearly reached, and exports the use of all of them."""

    def __init__(self, database: Database, intent_tables: IntentTables, jobs: Jobs) -> None:
        self._database = database
        self._table = intent_tables.advertise_limits
        self._near: set[tuple[str, str, str]] = set()
        jobs.add("peer-limits", self._run)

    async def _run(self) -> None:
        async def report(_: float | None) -> None:
            self.report()

        await run_rounds(Signal(self._table.observable), report)

    def report(self) -> None:
        """Log each limit once as it comes near, and again after it was not."""
        before, self._near = self._near, set()
        for row in self._table.all(self._database.snapshot()):
            key = (row.instance, row.peer, str(row.family))
            if 100 * row.prefixes < WARNING_PERCENT * row.limit:
                continue
            self._near.add(key)
            if key not in before:
                _log_near(row)

    def collect(self) -> list[GaugeMetricFamily]:
        """Return the limits, and the prefixes that wait."""
        labels = ["instance", "peer", "family"]
        limits = GaugeMetricFamily(
            "waggle_bgp_advertise_limit", "Prefixes that a peer is sent at most.", labels=labels
        )
        waiting = GaugeMetricFamily(
            "waggle_bgp_waiting_routes",
            "Prefixes of Services that a peer is not sent because of its limit.",
            labels=labels,
        )
        for row in self._table.all(self._database.snapshot()):
            names = [row.instance, row.peer, str(row.family)]
            limits.add_metric(names, row.limit)
            waiting.add_metric(names, row.waiting)
        return [limits, waiting]


def _log_near(row: AdvertiseLimit) -> None:
    log.warning(
        "limit of a peer is reached" if row.waiting else "limit of a peer is near",
        event_name="peer.advertise_limit",
        instance=row.instance,
        peer=row.peer,
        family=str(row.family),
        prefixes=row.prefixes,
        limit=row.limit,
        waiting=row.waiting,
    )
