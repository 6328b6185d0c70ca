"""The job that writes the Events of an agent, or of an operator."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

from reactivex.subject import Subject

from cells.apply.outcomes import LogLine, OutcomeLog, failure_text, reason
from cells.hive import Health
from cells.sources.api_server import Kubernetes
from reconcilers.report.event_objects import EventClient, EventObjects
from reconcilers.report.events import EventCorrelator, Occurrence
from reconcilers.target import ReconcileOutcome, Runner
from statedb import Database

Run = Callable[[Runner, Callable[[], None]], Awaitable[None]]
"""Runs rounds of a runner, with a report after each."""


class EventWrites:
    """Records Events, and writes them."""

    def __init__(
        self,
        database: Database,
        events: EventCorrelator,
        kubernetes: Kubernetes,
        manager: str,
        health: Health,
        *,
        rejected: LogLine,
        dropped: LogLine,
    ) -> None:
        """Write ``events`` as a field manager, with the lines of a rejected and of dropped Events."""
        self._database = database
        self.events = events
        self._kubernetes = kubernetes
        self._manager = manager
        self._health = health
        self._rejected = rejected
        self._dropped = dropped
        self._recorded: Subject[None] = Subject()
        self.outcomes = OutcomeLog(self._fields, _reconciler, failed=self._log)
        """Writes and failures."""

    def record(self, occurrence: Occurrence) -> None:
        """Record an occurrence. Its Event is written soon, or after the next start of the job."""
        self.events.record(occurrence, time.monotonic(), time.time())
        self._recorded.on_next(None)

    async def run(self, run: Run) -> None:
        """Write Events until cancelled."""
        async with self._kubernetes.writer(self._manager) as client:
            runner = self.runner(client)
            await run(runner, lambda: self.report(runner))

    def runner(self, client: EventClient) -> Runner:
        """Return a runner that writes Events."""
        events = EventObjects(
            self.events, client, self._recorded, now=time.monotonic, wall=time.time
        )
        rng = random.SystemRandom()
        return Runner(self._database, None, [events], rng, report=self.outcomes.note, name="report")

    def report(self, runner: Runner) -> None:
        """Report health, and Events that are dropped."""
        if dropped := self.events.dropped_to_warn_of(time.monotonic()):
            self._dropped(events=dropped)
        of_all = f", {self.events.dropped} dropped" if self.events.dropped else ""
        if text := failure_text(runner.reports(), lambda _, key: "/".join(key)):
            self._health.degraded(f"{text}{of_all}")
        else:
            self._health.ok(f"{self.outcomes.writes} written{of_all}")

    def _fields(self, outcome: ReconcileOutcome) -> dict[str, Any]:
        """Return the values of a line; none for an error of the API server, which it reports itself."""
        if not outcome.given_up:
            return {}
        return {"object": str(self.events.regarding(outcome.key)), "reason": reason(outcome)}

    def _log(self, **fields: object) -> None:
        if fields:
            self._rejected(**fields)


def _reconciler(outcome: ReconcileOutcome) -> str:
    return outcome.reconciler
