"""The job that runs apply rounds: when a table of a reconciler has changed, and when a retry is due.

A round is level-triggered: it compares, so a lost wake-up or a restart costs nothing but time. Objects
of the cluster that reconcilers read, such as Secrets, wake it after the next round of intent, which
may keep a password whose Secret is missing. The first round after all sources have been read opens
readiness.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container, Sequence
from typing import Any

import structlog
from reactivex import Observable, operators
from reactivex.subject import Subject

from cells.apply.outcomes import OutcomeLog, failure_text
from cells.hive import Health, Readiness
from cells.hive.jobs import Jobs
from cells.hive.rounds import in_slices, run_rounds
from cells.hive.signal import Signal
from cells.intent.cell import IntentLoop
from cells.observability.metrics import Metrics
from cells.sources.resources import ApplyTraceLinks
from cells.speaker.sessions import Sessions
from reconcilers.apply.peers import Peers
from reconcilers.target import ReconcileOutcome, Runner
from resources.tables import Tables
from statedb import Database, Revisions, Table

log = structlog.get_logger("waggle.apply")


class FirstPass(asyncio.Event):
    """Set once the first complete round is done."""


class ApplyLog(OutcomeLog[str]):
    """Logs and counts the objects that cannot be applied: the failures by their instance."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__(
            _fields,
            lambda outcome: outcome.key[0],
            failed=lambda **fields: log.error(
                "cannot be applied", event_name="apply.failed", **fields
            ),
            recovered=lambda **fields: log.info(
                "applied after a retry", event_name="apply.recovered", **fields
            ),
            errors=metrics.reconcile_errors.labels("apply"),
        )


def _fields(outcome: ReconcileOutcome) -> dict[str, Any]:
    fields = {"reconciler": outcome.reconciler, "object": "/".join(outcome.key)}
    if outcome.error is None:
        return fields
    return {**fields, "reason": outcome.text, "attempts": outcome.attempts}


class ApplyLoop:
    """The job that runs apply rounds."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        intent: IntentLoop,
        trace_links: ApplyTraceLinks,
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
        self._health = health
        self._open = readiness.gate("first-pass", "the first complete apply round")
        self._first_pass = first_pass
        self._trace_links = trace_links
        self._runner = runner
        compiled = frozenset(table.name for table in tables.resources)
        self._signal = Signal(*runner.wakes(compiled))
        self._followed: Subject[None] = Subject()
        intent.done.subscribe(self._follow)
        jobs.add("rounds", self._run)

    def followed(self, tables: Sequence[Table[Any]]) -> Observable[None]:
        """Emits when the speaker has followed changes of these tables, or need not follow them."""
        last: Revisions | None = None

        def is_changed(_: None) -> bool:
            nonlocal last
            snapshot = self._database.snapshot()
            changed = self._database.changed(last, snapshot)
            last = snapshot.revisions
            return not changed.isdisjoint(tables)

        return self._followed.pipe(operators.filter(is_changed))

    def _follow(self, _: None) -> None:
        if self._signal.is_raised or self._runner.is_outdated():
            self._signal.raise_flag()
        else:
            # A round of intent that changes no row causes no later round.
            self._trace_links.take()
            self._followed.on_next(None)

    async def _run(self) -> None:
        await run_rounds(self._signal, self._apply)

    async def _apply(self, _: float | None) -> float | None:
        if not self._intent.ready:
            self._health.ok("waiting for the first intent")
            return None
        loop = asyncio.get_running_loop()
        contexts, since = self._trace_links.take()
        began = time.perf_counter()
        summary = await in_slices(self._runner.slices(loop.time, contexts))
        if summary.changed:
            self._duration.observe(time.perf_counter() - began)
            if Peers.description.name in summary.due:
                self._sessions.poke()
            # The speaker writes its UPDATEs in the next turn of the loop.
            await asyncio.sleep(0)
            if since is not None:
                self._metrics.propagation_duration.observe(time.monotonic() - since)
        self._followed.on_next(None)
        if not self._first_pass.is_set():
            self.report()
        elif summary.changed:
            self.report(summary.due)
        if summary.complete:
            self._open()
            self._first_pass.set()
        return None if summary.retry_at is None else max(0.0, summary.retry_at - loop.time())

    @property
    def rounds(self) -> Observable[None]:
        """Emits after each round, and after a change that needs none."""
        return self._followed

    @property
    def has_applied(self) -> bool:
        """Whether a complete round has been done."""
        return self._first_pass.is_set()

    @property
    def is_current(self) -> bool:
        """Whether the speaker holds the intent."""
        return self.has_applied and not self._runner.has_failures

    def wake(self) -> None:
        """Run a round soon: for what changes without a round of intent."""
        self._signal.raise_flag()

    def report(self, changed: Container[str] | None = None) -> None:
        """Derive the cell's health from the statuses of all objects.

        ``changed`` are the reconcilers whose statuses may differ, None is all.
        """
        reports = self._runner.reports()
        for report in reports:
            name = report.description.name
            # In each round: not a call of `counted`.
            objects = f"{report.objects} object{'s' * (report.objects != 1)}"
            text = f"{objects}, last run took {1000 * report.seconds:.1f} ms"
            if report.failure is not None:
                self._health.scope(name).degraded(f"{report.errors} fail of {text}")
            elif changed is None or name in changed:
                self._health.scope(name).ok(text)
        if text := failure_text(reports, lambda name, key: f"{name} {'/'.join(key)}"):
            self._health.degraded(text)
        else:
            self._health.ok("the speaker holds the intent")
