"""The jobs of runners of reconcilers: a round when something that they declare has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cells.hive.rounds import in_slices, run_rounds
from cells.hive.signal import Signal
from reconcilers.target import ReconcilerReport, Runner


async def reconcile(runner: Runner, report: Callable[[], None]) -> None:
    """Run rounds until cancelled, with a report after each: of health."""
    now = asyncio.get_running_loop().time

    async def run(_: float | None) -> float | None:
        summary = await in_slices(runner.slices(now))
        report()
        return None if summary.retry_at is None else max(0.0, summary.retry_at - now())

    await run_rounds(Signal(*runner.wakes()), run)


class Runners:
    """The runners of an agent, whose reconcilers are listed together."""

    def __init__(self, runner: Runner) -> None:
        """``runner`` is that of the speaker, which is there from the start."""
        self._runners = [runner]

    async def run(self, runner: Runner, report: Callable[[], None]) -> None:
        """Run rounds of another runner until cancelled; it is listed meanwhile."""
        self._runners.append(runner)
        try:
            await reconcile(runner, report)
        finally:
            self._runners.remove(runner)

    def reports(self) -> list[ReconcilerReport]:
        """Describe all reconcilers: of the speaker first, of each runner in their order."""
        return [report for runner in self._runners for report in runner.reports()]
