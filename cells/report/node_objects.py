"""The job that writes the objects which dialects have each node write about itself."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter

import structlog
from prometheus_client.core import CounterMetricFamily, Metric

from cells.dialect_failures import DialectFailures
from cells.hive import Group, Health
from cells.hive.jobs import Jobs
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.intent import IntentLoop
from cells.kubernetes import Kubernetes
from cells.node import ThisNode
from cells.options import ReportOptions
from cells.report.cluster_size import MANAGER, ClusterSize
from cells.speaker.sessions import Sessions
from reconcilers.dialect import Dialect, NodeObjectKind
from reconcilers.report.node_objects.changes import JsonObject
from reconcilers.report.node_objects.place import Place, owners
from reconcilers.report.node_objects.rows import NodeObjectRows
from reconcilers.report.node_objects.writer import KindWriter, NodeObjectOutcome
from reconcilers.tables import IntentTables
from resources.kubernetes import Writer
from resources.tables import Tables
from speaker.api import SpeakerPort
from statedb import Database

POLL_SECONDS = 10.0
"""Between two computations without a change: what the speaker holds changes without any."""
INTERVAL_SECONDS = 0.5
"""Between two computations, at the least."""

log = structlog.get_logger("waggle.report")


class NodeObjectReport:
    """Computes the objects of this node, and writes what differs."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        intent_tables: IntentTables,
        intent: IntentLoop,
        node: ThisNode,
        kubernetes: Kubernetes,
        dialects: Group[Dialect],
        speaker: SpeakerPort,
        sessions: Sessions,
        options: ReportOptions,
        cluster: ClusterSize,
        health: Health,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._tables = tables
        self._intent = intent
        self._node = node
        self._kubernetes = kubernetes
        self._dialects = [dialect for dialect in dialects if dialect.node_object_kinds]
        self._enabled = options.status
        self._cluster = cluster
        self._health = health.scope("objects")
        self._rng = random.SystemRandom()
        self._writes: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._writers: dict[str, KindWriter] = {}
        self._failing = DialectFailures(
            self._health,
            log,
            "a dialect cannot compute its objects of the node; the last ones are kept",
            "report.dialect_failed",
        )
        if not self._dialects:
            return
        self._rows = NodeObjectRows(database, intent_tables, self._dialects, node.name, speaker)
        self._signal = Signal(
            *(table.observable for table in (*self._rows.followed, sessions.table)), intent.done
        )
        self._changed = asyncio.Event()
        jobs.add("objects", self._compute)
        jobs.add("object-writes", self._write)

    async def _compute(self) -> None:
        await run_rounds(
            self._signal, self._compute_once, interval=INTERVAL_SECONDS, poll=POLL_SECONDS
        )

    async def _compute_once(self, _: float | None) -> None:
        if not self._intent.ready:
            return
        more = self._rows.run()
        while more:
            await asyncio.sleep(0)
            more = self._rows.more()
        self._failing.report(
            self._rows.failures, "objects cannot be computed", "computed from sessions and routes"
        )
        for key, row in self._rows.take().items():
            writer = self._writers.get(key.kind)
            if writer is not None:
                writer.want(key, row)
        self._changed.set()

    async def _write(self) -> None:
        # What is not computed yet is not to be deleted.
        await self._changed.wait()
        async with self._kubernetes.writer(MANAGER) as client:
            self._writers = {
                kind.kind.name: self._new_writer(client, dialect, kind)
                for dialect in self._dialects
                for kind in dialect.node_object_kinds
            }
            for key, row in self._rows.present.items():
                self._writers[key.kind].want(key, row)
            while True:
                self._changed.clear()
                pauses = [await writer.step() for writer in self._writers.values()]
                for writer in self._writers.values():
                    self._report_state(writer)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(pauses)):
                        await self._changed.wait()

    def _new_writer(self, client: Writer, dialect: Dialect, kind: NodeObjectKind) -> KindWriter:
        namespace = "" if kind.option is None else str(getattr(dialect.options, kind.option))

        def present_owners() -> tuple[JsonObject, ...]:
            row = self._tables.nodes.get(self._database.snapshot(), ("", self._node.name))
            return owners(kind, namespace, row, self._node.pod)

        return KindWriter(
            client,
            Place(kind, self._node.name, namespace, present_owners),
            self._rng,
            enabled=self._enabled,
            report=self._report,
            now=asyncio.get_running_loop().time,
            wall=time.time,
            nodes=lambda: self._cluster.nodes,
        )

    def _report_state(self, writer: KindWriter) -> None:
        scope = self._health.scope(writer.kind)
        if writer.failure:
            scope.degraded(writer.failure)
        elif writer.missing:
            scope.stopped(
                f"the API server does not have it (waggle crds {writer.kind} | kubectl create -f -)"
            )
        elif not self._enabled:
            scope.ok("switched off (--status-report=false); there is none")
        else:
            scope.ok(f"{writer.count} of this node")

    def _report(self, outcome: NodeObjectOutcome) -> None:
        if not outcome.error:
            self._writes[outcome.kind] += 1
            return
        self._failures[outcome.kind] += 1
        if not outcome.repeated:
            log.warning(
                "object is not written",
                event_name="report.object_failed",
                object="/".join(part for part in (outcome.kind, outcome.name) if part),
                reason=outcome.error,
            )

    def collect(self) -> list[Metric]:
        """Return the counts of writes."""
        if not self._dialects:
            return []
        writes = CounterMetricFamily(
            "waggle_report_object_writes",
            "Requests that created, changed or deleted objects of this node.",
            labels=["kind"],
        )
        failures = CounterMetricFamily(
            "waggle_report_object_failures", "Such requests that failed.", labels=["kind"]
        )
        for dialect in self._dialects:
            for kind in dialect.node_object_kinds:
                name = kind.kind.name
                writes.add_metric([name], self._writes[name])
                failures.add_metric([name], self._failures[name])
        return [writes, failures]
