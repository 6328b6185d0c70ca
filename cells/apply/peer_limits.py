"""The limits of what peers are sent: those that peers make known, warnings, and the metrics of all."""

from __future__ import annotations

import asyncio

import structlog
from prometheus_client.core import GaugeMetricFamily

from cells.hive.jobs import Jobs
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.speaker.events import SpeakerEvents
from reconcilers.intent.learned_limits import LearnedLimits
from reconcilers.intent.peer_limits import WARNING_PERCENT
from reconcilers.model import AdvertiseLimit, LearnedLimit
from reconcilers.tables import IntentTables
from speaker.api import Event, StateChanged
from statedb import Database

log = structlog.get_logger("waggle.apply")


class LearnedLimitLoop:
    """The job that writes learned limits, and lifts them in time.

    Follows the events of sessions; a session without a limit writes nothing.
    """

    def __init__(
        self,
        database: Database,
        intent_tables: IntentTables,
        events: SpeakerEvents,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._changes = intent_tables.learned_limits.changes(database)
        self._limits = LearnedLimits(database, intent_tables)
        self._signal = Signal(intent_tables.peers.observable)
        # At once: the peer may accept the next session soon after.
        events.observable.subscribe(self._note)
        jobs.add("learned-limits", self._run)

    def _note(self, event: Event) -> None:
        if not isinstance(event, StateChanged):
            return
        if self._limits.note(event, asyncio.get_running_loop().time()):
            self._signal.raise_flag()

    async def _run(self) -> None:
        async def write(_: float | None) -> float | None:
            pause = self._limits.write(asyncio.get_running_loop().time())
            for change in self._changes.next(self._database.snapshot()):
                self._report(change.row, lifted=change.deleted)
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
