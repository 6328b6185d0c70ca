"""The jobs that write an agent's statuses and Events into its cluster."""

from __future__ import annotations

import asyncio
import random
import time

import structlog
from prometheus_client.core import CounterMetricFamily, Metric
from reactivex import operators

from cells.api.model import EventItem
from cells.api.resource import ApiResource
from cells.apply.outcomes import OutcomeLog, failure_text, object_ref
from cells.apply.reconcile import Runners
from cells.hive import Group, Health, Wiring, provide
from cells.hive.failing_job import Watch
from cells.hive.jobs import Jobs
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.intent.cell import IntentLoop
from cells.observability.metrics import MetricsCollector
from cells.options import ReportOptions
from cells.report.cluster_size import MANAGER, ClusterSize
from cells.report.event_items import event_item
from cells.report.event_writes import EventWrites
from cells.report.node_objects import NodeObjectReport
from cells.sources.api_server import Kubernetes
from cells.speaker.events import SpeakerEvents
from cells.speaker.sessions import Sessions
from cells.state.node import ThisNode
from reconcilers.dialect import Dialect, ObjectStatus
from reconcilers.intent_tables import IntentTables
from reconcilers.report.events import EventCorrelator
from reconcilers.report.occurrences import Occurrences
from reconcilers.report.statuses import Statuses
from reconcilers.target import ReconcileOutcome, Runner
from reconcilers.target.write_spread import WriteSpread
from resources.streams import guarded
from resources.tables import Tables
from speaker.api import Event, ListenChanged, SpeakerPort
from statedb import Database, Table

SETTLE_SECONDS = 2.0
"""How long a problem lasts before it becomes an Event: related objects arrive one after the other."""

log = structlog.get_logger("waggle.report")


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
        speaker: SpeakerPort,
        sessions: Sessions,
        options: ReportOptions,
        cluster: ClusterSize,
        runners: Runners,
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
        self._runners = runners
        self._statuses = OutcomeLog(
            _status_fields,
            lambda outcome: outcome.reconciler,
            failed=lambda **fields: log.warning(
                "status is not written", event_name="report.failed", **fields
            ),
            recovered=lambda **fields: log.info(
                "status is written again", event_name="report.recovered", **fields
            ),
        )
        self._rng = random.SystemRandom()
        self._cluster = cluster
        jobs.add("status", self._write_status)
        self._events = EventWrites(
            database,
            EventCorrelator(node.name, WriteSpread(self._rng.random, self._count_nodes)),
            kubernetes,
            MANAGER,
            health.scope("events"),
            rejected=lambda **fields: log.warning(
                "event is not written", event_name="report.event_refused", **fields
            ),
            dropped=lambda **fields: log.warning(
                "Events are dropped", event_name="report.events_dropped", **fields
            ),
        )
        if not options.events:
            health.scope("events").stopped("switched off (--events=false)")
            return
        occurrences = self._occurrences = Occurrences(
            database,
            tables,
            intent_tables,
            node.name,
            dialects,
            speaker.peers,
            speaker.instances,
            report=self._events.record,
            resolved=self._events.events.resolve,
            now=time.time,
            on_error=_log_failed_dialect,
        )
        self._due = Signal(
            tables.source_problems.observable,
            intent_tables.problems.observable,
            intent_tables.reconcile_statuses.observable,
            intent_tables.bfd_sessions.observable,
            # At the end of a round, as peers and the objects of Events change together. Most rounds
            # are about Services that no Event regards.
            intent.done.pipe(operators.filter(lambda _: occurrences.is_due())),
            sessions.table.observable,
            speaker_events.observable.pipe(operators.filter(_is_of_listener)),
        )
        search = Watch(self._find)
        speaker_events.observable.subscribe(guarded(self._occurrences.receive, search.fail))
        jobs.add("occurrences", search.run)
        jobs.add("events", self._write_events)

    def events(self) -> list[EventItem]:
        """Return the Events that are reported, the last one last; none where these are off."""
        return [event_item(self._node, recorded) for recorded in self._events.events.recorded()]

    async def _write_status(self) -> None:
        async with self._kubernetes.writer(MANAGER) as writer:
            health = self._health.scope("status")
            statuses = Statuses(
                self._database,
                self._table,
                writer,
                self._kinds,
                WriteSpread(self._rng.random, self._count_nodes),
                enabled=self._options.status,
                now=asyncio.get_running_loop().time,
            )
            runner = Runner(
                self._database,
                None,
                [statuses],
                self._rng,
                report=self._statuses.note,
                name="report",
            )

            def report() -> None:
                if text := failure_text(runner.reports(), lambda _, key: str(object_ref(key))):
                    health.degraded(f"{text}; it is retried")
                else:
                    health.ok(statuses.message)

            await self._runners.run(runner, report)

    def _count_nodes(self) -> int:
        return self._cluster.nodes

    async def _find(self) -> None:
        await run_rounds(self._due, self._compare)

    async def _compare(self, _: float | None) -> None:
        await asyncio.sleep(SETTLE_SECONDS)
        if self._intent.ready:
            self._occurrences.compare()

    async def _write_events(self) -> None:
        await self._events.run(self._runners.run)

    def collect(self) -> list[Metric]:
        """Return the counts of writes."""
        writes = CounterMetricFamily(
            "waggle_report_writes", "Statuses and Events written.", labels=["what"]
        )
        failures = CounterMetricFamily(
            "waggle_report_failures", "Statuses and Events that were not written.", labels=["what"]
        )
        for what, outcomes in (("status", self._statuses), ("event", self._events.outcomes)):
            writes.add_metric([what], outcomes.writes)
            failures.add_metric([what], outcomes.failures.total())
        dropped = CounterMetricFamily("waggle_report_events_dropped", "Events not written at all.")
        dropped.add_metric([], self._events.events.dropped)
        return [writes, failures, dropped]


def _status_fields(outcome: ReconcileOutcome) -> dict[str, str]:
    if outcome.error is None:
        return {}
    return {"object": str(object_ref(outcome.key)), "reason": outcome.text}


def _is_of_listener(event: Event) -> bool:
    return isinstance(event, ListenChanged)


def _log_failed_dialect(dialect: str, error: Exception) -> None:
    log.error(
        "a dialect cannot name the object of an Event; it is regarding the Node",
        event_name="events.dialect_failed",
        dialect=dialect,
        exc_info=error,
    )


def events_resource(report: Report) -> ApiResource:
    """Return the path of the Events: as in the API server, without a request to it."""
    return ApiResource(path="/v1/events", kind="EventList", read=lambda _: report.events())


WIRING = Wiring(
    private=(ClusterSize, Report),
    invokes=(Report, NodeObjectReport),
    contributes=(
        provide(Report, as_=MetricsCollector),
        provide(NodeObjectReport, as_=MetricsCollector),
        events_resource,
    ),
)
