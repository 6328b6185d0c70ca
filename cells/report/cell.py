"""The jobs that write an agent's status and Events into its cluster."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Annotated

from prometheus_client.core import CounterMetricFamily, Metric

from cells.hive import Cell, Group, Health, Jobs, Options, Signal, provide, setting
from cells.hive.rounds import run_rounds
from cells.intent import IntentLoop
from cells.kubernetes import Kubernetes
from cells.metrics import MetricsCollector
from cells.node import ThisNode
from cells.report.events import EventWriting
from cells.report.occurrences import Occurrences
from cells.report.statuses import StatusWriting
from cells.speaker.events import SpeakerEvents
from reconcilers.dialect import Dialect, ObjectStatus
from reconcilers.report.events import EventLog, Occurrence
from reconcilers.tables import IntentTables
from resources.tables import Tables
from statedb import Database, Table

MANAGER = "waggle-agent"
"""The field manager."""
SETTLE = 2.0
"""Seconds for which a problem has to last before it is an Event."""


class ReportOptions(Options, frozen=True):
    """Options of the report cell."""

    status: Annotated[
        bool,
        setting(
            "write the status of the objects that this node reports on; if false, one that was "
            "written is removed",
            flag="--status-report",
        ),
    ] = True
    events: Annotated[
        bool, setting("write Events about sessions and configuration", flag="--events")
    ] = True


class Report:
    """The jobs."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        intent_tables: IntentTables,
        intent: IntentLoop,
        node: ThisNode,
        kubernetes: Kubernetes,
        statuses: Table[ObjectStatus],
        dialects: Group[Dialect],
        speaker_events: SpeakerEvents,
        options: ReportOptions,
        health: Health,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._intent = intent
        self._node = node.name
        self._kubernetes = kubernetes
        self._table = statuses
        self._kinds = tables.kinds
        self._options = options
        self._health = health
        self._writes = {"status": 0, "event": 0}
        self._failures = {"status": 0, "event": 0}
        jobs.add("status", self._write_status)
        if not options.events:
            health.scope("events").stopped("switched off (--events=false)")
            return
        self._log = EventLog(node.name)
        self._noted = asyncio.Event()
        self._occurrences = Occurrences(
            database,
            tables,
            intent_tables,
            node.name,
            dialects,
            report=self._note,
            solved=self._log.forget,
        )
        self._problems = Signal(
            tables.source_problems.observable,
            intent_tables.problems.observable,
            intent_tables.reconcile_statuses.observable,
            intent.done,
        )
        speaker_events.observable.subscribe(self._occurrences.on_event)
        jobs.add("occurrences", self._find)
        jobs.add("events", self._write_events)

    async def _write_status(self) -> None:
        async with self._kubernetes.writer(MANAGER) as writer:
            writing = StatusWriting(
                writer,
                self._kinds,
                random.SystemRandom(),
                self._health.scope("status"),
                enabled=self._options.status,
                failed=lambda: self._count(self._failures, "status"),
                written=lambda: self._count(self._writes, "status"),
            )

            async def write(_: float | None) -> float | None:
                return await writing.step(list(self._table.all(self._database.snapshot())))

            await run_rounds(Signal(self._table.observable), write)

    async def _find(self) -> None:
        await run_rounds(self._problems, self._look)

    async def _look(self, _: float | None) -> None:
        await asyncio.sleep(SETTLE)
        if self._intent.ready:
            self._occurrences.look()

    async def _write_events(self) -> None:
        async with self._kubernetes.writer(MANAGER) as writer:
            writing = EventWriting(
                self._log,
                writer,
                random.SystemRandom(),
                self._health.scope("events"),
                failed=lambda: self._count(self._failures, "event"),
                written=lambda: self._count(self._writes, "event"),
            )
            while True:
                pause = await writing.step()
                try:
                    async with asyncio.timeout(pause):
                        await self._noted.wait()
                except TimeoutError:
                    pass
                self._noted.clear()

    def _note(self, occurrence: Occurrence) -> None:
        self._log.note(occurrence, asyncio.get_running_loop().time(), time.time())
        self._noted.set()

    def _count(self, counts: dict[str, int], what: str) -> None:
        counts[what] += 1

    def collect(self) -> list[Metric]:
        """Return the counts of writes."""
        writes = CounterMetricFamily(
            "waggle_report_writes", "Statuses and Events written.", labels=["what"]
        )
        failures = CounterMetricFamily(
            "waggle_report_failures", "Statuses and Events that were not written.", labels=["what"]
        )
        for what in self._writes:
            writes.add_metric([what], self._writes[what])
            failures.add_metric([what], self._failures[what])
        return [writes, failures]


CELL = Cell(
    name="report",
    description="Writes this node's status and Events into the cluster.",
    options=ReportOptions,
    on_beside="kubernetes",
    invokes=(Report,),
    contributes=(provide(Report, as_=MetricsCollector),),
)
