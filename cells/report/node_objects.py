"""The job that writes the objects which dialects have each node write about itself."""

from __future__ import annotations

import asyncio
import functools
import random
import time
from collections import Counter
from collections.abc import Sequence

import structlog
from prometheus_client.core import CounterMetricFamily, Metric
from reactivex.subject import Subject

from cells.apply.loop import ApplyLoop
from cells.apply.outcomes import OutcomeLog, failure_text, reason
from cells.apply.reconcile import Runners
from cells.hive import Group, Health
from cells.hive.jobs import Jobs
from cells.hive.rounds import in_slices, run_rounds
from cells.hive.signal import Signal
from cells.intent.cell import IntentLoop
from cells.intent.dialect_failures import DialectFailures
from cells.options import ReportOptions
from cells.report.cluster_size import MANAGER, ClusterSize
from cells.sources.api_server import Kubernetes
from cells.speaker.sessions import Sessions
from cells.state.node import ThisNode
from reconcilers.dialect import Dialect, NodeObjectKind, WrittenObjects, extended
from reconcilers.intent_tables import IntentTables
from reconcilers.report.node_objects.compute_rows import NodeObjectRows
from reconcilers.report.node_objects.objects import ReportedNodeObjects
from reconcilers.report.node_objects.place import Place, owners
from reconcilers.report.node_objects.stored import JsonObject
from reconcilers.target import ReconcileOutcome, ReconcilerReport, Runner
from reconcilers.target.reconciler import ObjectKey
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
        apply: ApplyLoop,
        node: ThisNode,
        kubernetes: Kubernetes,
        dialects: Group[Dialect],
        speaker: SpeakerPort,
        sessions: Sessions,
        options: ReportOptions,
        cluster: ClusterSize,
        runners: Runners,
        health: Health,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._tables = tables
        self._intent = intent
        self._node = node
        self._kubernetes = kubernetes
        self._kinds = [
            (dialect, kind)
            for dialect, written in extended(dialects, WrittenObjects)
            for kind in written.kinds
        ]
        self._enabled = options.status
        self._cluster = cluster
        self._health = health.scope("objects")
        self._rng = random.SystemRandom()
        self._writes: Counter[str] = Counter()
        self._runners = runners
        self._outcomes = self._new_outcomes()
        self._objects: dict[str, ReportedNodeObjects] = {}
        self._changed: Subject[None] = Subject()
        self._computed = {dialect.name: asyncio.Event() for dialect, _ in self._kinds}
        """Set once the objects of a dialect are known: none of the stored ones is deleted before."""
        self._failing = DialectFailures(
            self._health,
            log,
            "a dialect cannot compute its objects of the node; the last ones are kept",
            "report.dialect_failed",
        )
        if not self._kinds:
            return
        self._rows = NodeObjectRows(database, intent_tables, dialects, node.name, speaker)
        self._signal = Signal(apply.followed(self._rows.followed), sessions.table.observable)
        jobs.add("objects", self._compute)
        for dialect, written in extended(dialects, WrittenObjects):
            write = functools.partial(self._write, dialect, written.kinds)
            jobs.add(f"object-writes-{dialect.name}", write)

    def _new_outcomes(self) -> OutcomeLog[str]:
        return OutcomeLog(
            self._fields,
            lambda outcome: outcome.reconciler,
            failed=lambda **fields: log.warning(
                "object is not written", event_name="report.object_failed", **fields
            ),
        )

    async def _compute(self) -> None:
        await run_rounds(
            self._signal, self._compute_once, interval=INTERVAL_SECONDS, poll=POLL_SECONDS
        )

    async def _compute_once(self, _: float | None) -> None:
        if not self._intent.ready:
            return
        await in_slices(self._rows.compute())
        self._failing.report(
            self._rows.failures, "objects cannot be computed", "computed from sessions and routes"
        )
        for key, row in self._rows.take().items():
            if key.kind in self._objects:
                self._objects[key.kind].give(key.labels, row)
        for dialect in self._rows.computed:
            self._computed[dialect].set()
        self._changed.on_next(None)

    async def _write(self, dialect: Dialect, kinds: Sequence[NodeObjectKind]) -> None:
        await self._computed[dialect.name].wait()
        async with self._kubernetes.writer(MANAGER) as client:
            of_kinds = {kind.kind.name: self._new_objects(client, dialect, kind) for kind in kinds}
            self._objects |= of_kinds
            for key, row in self._rows.present.items():
                if key.kind in of_kinds:
                    of_kinds[key.kind].give(key.labels, row)
            objects = list(of_kinds.values())
            runner = Runner(
                self._database, None, objects, self._rng, report=self._outcomes.note, name="report"
            )

            def report() -> None:
                for state in runner.reports():
                    self._report_state(state)

            await self._runners.run(runner, report)

    def _new_objects(
        self, client: Writer, dialect: Dialect, kind: NodeObjectKind
    ) -> ReportedNodeObjects:
        namespace = "" if kind.option is None else str(getattr(dialect.options, kind.option))

        def present_owners() -> tuple[JsonObject, ...]:
            row = self._tables.nodes.get(self._database.snapshot(), ("", self._node.name))
            return owners(kind, namespace, row, self._node.pod)

        def count_write() -> None:
            self._writes[kind.kind.name] += 1

        return ReportedNodeObjects(
            client,
            Place(kind, self._node.name, namespace, present_owners),
            self._rng,
            self._changed,
            enabled=self._enabled,
            on_write=count_write,
            now=asyncio.get_running_loop().time,
            wall=time.time,
            nodes=lambda: self._cluster.nodes,
        )

    def _report_state(self, state: ReconcilerReport) -> None:
        kind = state.description.name
        scope = self._health.scope(kind)
        objects = self._objects[kind]
        if text := failure_text((state,), lambda _, key: self._name(kind, key)):
            scope.degraded(f"{text}; it is retried")
        elif objects.missing:
            scope.stopped(
                f"the API server does not have it (waggle crds {kind} | kubectl create -f -)"
            )
        elif not self._enabled:
            scope.ok("switched off (--status-report=false); there is none")
        else:
            scope.ok(f"{objects.count} of this node")

    def _name(self, kind: str, key: ObjectKey) -> str:
        return f"{kind}/{self._objects[kind].name_of(key)}".rstrip("/")

    def _fields(self, outcome: ReconcileOutcome) -> dict[str, str]:
        return {"object": self._name(outcome.reconciler, outcome.key), "reason": reason(outcome)}

    def collect(self) -> list[Metric]:
        """Return the counts of writes."""
        if not self._kinds:
            return []
        writes = CounterMetricFamily(
            "waggle_report_object_writes",
            "Requests that created, changed or deleted objects of this node.",
            labels=["kind"],
        )
        failures = CounterMetricFamily(
            "waggle_report_object_failures", "Such requests that failed.", labels=["kind"]
        )
        for _, kind in self._kinds:
            name = kind.kind.name
            writes.add_metric([name], self._writes[name])
            failures.add_metric([name], self._outcomes.failures[name])
        return [writes, failures]
