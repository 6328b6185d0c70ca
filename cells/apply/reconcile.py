"""The job of a runner of reconcilers: a round when something that they declare has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cells.hive.rounds import in_slices, run_rounds
from cells.hive.signal import Signal
from reconcilers.target import Runner


async def reconcile(runner: Runner, report: Callable[[], None]) -> None:
    """Run rounds until cancelled, with a report after each: of health."""
    now = asyncio.get_running_loop().time

    async def run(_: float | None) -> float | None:
        summary = await in_slices(runner.slices(now))
        report()
        return None if summary.retry_at is None else max(0.0, summary.retry_at - now())

    await run_rounds(Signal(*runner.wakes()), run)
