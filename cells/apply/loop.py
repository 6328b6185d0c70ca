"""The job that runs apply rounds: when a table of a reconciler has changed, and when a retry is due.

A round is level-triggered: it compares, so a lost wake-up or a restart costs nothing but time. Objects
of the cluster that reconcilers read, such as Secrets, wake it after the next round of intent, which
may keep a password whose Secret is missing. The first round after all sources have been read opens
readiness.
"""

from __future__ import annotations

import asyncio
import time

import structlog
from reactivex import operators

from cells.hive import Health, Readiness
from cells.hive.jobs import Jobs
from cells.hive.rounds import in_slices, run_rounds
from cells.hive.signal import Signal
from cells.intent import IntentLoop, IntentTraceLinks
from cells.metrics import Metrics
from cells.speaker.sessions import Sessions
from reconcilers.tables import IntentTables
from reconcilers.target import Runner
from resources.enumeration import first_of
from resources.tables import Tables
from statedb import Database

log = structlog.get_logger("waggle.apply")


class FirstPass(asyncio.Event):
    """Set once the first complete round is done."""


class ApplyLoop:
    """The job that runs apply rounds."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        intent_tables: IntentTables,
        intent: IntentLoop,
        trace_links: IntentTraceLinks,
        runner: Runner,
        sessions: Sessions,
        metrics: Metrics,
        readiness: Readiness,
        health: Health,
        jobs: Jobs,
        first_pass: FirstPass,
    ) -> None:
        self._database = database
        self._intent = intent
        self._sessions = sessions
        self._metrics = metrics
        self._duration = metrics.reconcile_duration.labels("apply")
        self._errors = metrics.reconcile_errors.labels("apply")
        self._health = health
        self._open = readiness.gate("first-pass", "the first complete apply round")
        self._first_pass = first_pass
        self._trace_links = trace_links
        self._runner = runner
        self._statuses = intent_tables.reconcile_statuses.changes(database)
        self._failing: dict[tuple[str, str], str] = {}
        compiled = frozenset(table.name for table in tables.resources)
        outdated = intent.done.pipe(operators.filter(lambda _: runner.is_outdated()))
        self._signal = Signal(*runner.wakes(compiled), outdated)
        jobs.add("rounds", self._run)

    async def _run(self) -> None:
        await run_rounds(self._signal, self._apply)

    async def _apply(self, _: float | None) -> float | None:
        if not self._intent.ready:
            self._health.ok("waiting for the first intent")
            return None
        loop = asyncio.get_running_loop()
        contexts, since = self._trace_links.take()
        began = time.perf_counter()
        parent = contexts[-1] if contexts else None
        summary = await in_slices(self._runner.slices(loop.time, parent))
        if summary.changed:
            self._duration.observe(time.perf_counter() - began)
            self._sessions.poke()
            # The speaker writes its UPDATEs in the next turn of the loop.
            await asyncio.sleep(0)
            if since is not None:
                self._metrics.propagation_duration.observe(time.monotonic() - since)
        if summary.changed or not self._first_pass.is_set():
            self.report()
        if summary.complete:
            self._open()
            self._first_pass.set()
        return None if summary.retry_at is None else max(0.0, summary.retry_at - loop.time())

    def wake(self) -> None:
        """Run a round soon: for what changes without a round of intent."""
        self._signal.raise_flag()

    def report(self) -> None:
        """Log the statuses that changed, and derive the cell's health from all of them."""
        self._log_statuses()
        for report in self._runner.reports():
            scope = self._health.scope(report.description.name)
            text = f"{report.objects} objects, last run took {1000 * report.seconds:.1f} ms"
            if report.errors:
                scope.degraded(f"{report.errors} fail of {text}")
            else:
                scope.ok(text)
        if self._failing:
            (reconciler, name), error = min(self._failing.items())
            text = f"{reconciler} {name}: {error}"
            self._health.degraded(first_of(text, len(self._failing)))
        else:
            self._health.ok("the speaker holds the intent")

    def _log_statuses(self) -> None:
        for change in self._statuses.next(self._database.snapshot()):
            row = change.row
            key = (row.reconciler, row.object)
            if change.deleted or row.error is None:
                if self._failing.pop(key, None) is not None:
                    log.info(
                        "applied after a retry",
                        event_name="apply.recovered",
                        reconciler=row.reconciler,
                        object=row.object,
                    )
                continue
            self._errors.inc()
            if self._failing.get(key) != row.error:
                log.error(
                    "cannot be applied",
                    event_name="apply.failed",
                    reconciler=row.reconciler,
                    object=row.object,
                    reason=row.error,
                    attempts=row.attempts,
                )
            self._failing[key] = row.error
