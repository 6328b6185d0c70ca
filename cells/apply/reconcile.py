"""The jobs of runners of reconcilers: a round when something that they declare has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client.core import GaugeMetricFamily, Metric

from cells.hive.rounds import in_slices, run_rounds
from cells.hive.signal import Signal
from reconcilers.target import ReconcilerReport, Runner


async def reconcile(runner: Runner, report: Callable[[], None]) -> None:
    """Run rounds until cancelled, with a report after each: of health."""
    now = asyncio.get_running_loop().time

    async def run(_: float | None) -> float | None:
        summary = await in_slices(runner.slices(now))
        if summary.changed:
            # What the round has left for the next one may be due at once, and much.
            await asyncio.sleep(0)
        report()
        return None if summary.retry_at is None else max(0.0, summary.retry_at - now())

    await run_rounds(Signal(*runner.wakes()), run)


class Runners:
    """The runners of a program, whose reconcilers are listed and measured together."""

    def __init__(self, *runners: Runner) -> None:
        """``runners`` are there from the start."""
        self._runners = [*runners]

    @contextmanager
    def listed(self, runner: Runner) -> Iterator[None]:
        """Within this context another runner is listed."""
        self._runners.append(runner)
        try:
            yield
        finally:
            self._runners.remove(runner)

    async def run(self, runner: Runner, report: Callable[[], None]) -> None:
        """Run rounds of another runner until cancelled; it is listed meanwhile."""
        with self.listed(runner):
            await reconcile(runner, report)

    def reports(self) -> list[ReconcilerReport]:
        """Describe all reconcilers: in the order of their runners, and of each runner in theirs."""
        return [report for runner in self._runners for report in runner.reports()]

    def collect(self) -> list[Metric]:
        """Return how many objects each reconciler has, how many wait, and how many fail."""
        objects, waiting, failed = (
            GaugeMetricFamily(f"waggle_reconcile_{name}", text, labels=["reconciler"])
            for name, text in (
                ("objects", "Objects of a reconciler."),
                ("waiting_objects", "Objects that are to be reconciled, failed ones included."),
                ("failed_objects", "Objects that failed, and are retried."),
            )
        )
        for report in self.reports():
            labels = [report.description.name]
            objects.add_metric(labels, report.objects)
            waiting.add_metric(labels, report.waiting)
            failed.add_metric(labels, report.errors)
        return [objects, waiting, failed]
