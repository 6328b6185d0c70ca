"""Jobs of an agent in a router, beside its speaker: what becomes wrong is printed."""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from collections.abc import Callable
from typing import Final

import structlog
from reactivex.subject import Subject

from cells.hive import Health
from cells.hive.health import Level
from cells.hive.jobs import Jobs, Supervisor
from cells.hive.lifecycle import Lifecycle
from speaker.api import Event

REPORT_SECONDS: Final = 1.0
"""Between two readings of the health."""


class SessionEvents:
    """The speaker's events, for jobs that follow sessions."""

    def __init__(self) -> None:
        self.observable: Subject[Event] = Subject()


class RouterJobs:
    """The jobs of one part of a router, their hooks and their health."""

    def __init__(
        self,
        name: str,
        report: Callable[[str], None],
        effect: str,
        log_level: int = logging.WARNING,
    ) -> None:
        """``report`` prints a line; ``effect`` is that of a job that fails for good."""
        self._name = name
        self._report = report
        self._effect = effect
        self._log_level = log_level
        self._failed: asyncio.Future[None] | None = None
        self._supervisor = Supervisor(self._give_up, random.Random())  # noqa: S311  jitter
        self._task: asyncio.Task[None] | None = None
        self.health = Health()
        self.lifecycle = Lifecycle()
        self.jobs = Jobs(name, self._supervisor, self.lifecycle, self.health)
        self.jobs.add("report", self._report_problems)

    def start(self) -> asyncio.Event:
        """Start the hooks and the jobs; returns what is set when the hooks have run."""
        # Standard output has the line of each listening address.
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(self._log_level),
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )
        started = asyncio.Event()
        self._task = asyncio.create_task(self._run(started))
        self._task.add_done_callback(lambda _: started.set())
        return started

    async def stop(self) -> None:
        """End the jobs, and run the hooks of the end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self, started: asyncio.Event) -> None:
        failed = self._failed = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.TaskGroup() as group:
                self._supervisor.bind(group)
                await self.lifecycle.start()
                started.set()
                try:
                    await failed
                finally:
                    await self.lifecycle.stop()
        except Exception as error:  # noqa: BLE001  the sessions go on
            self._report(f"{self._name}: {self._effect}: {error}")

    def _give_up(self, error: Exception) -> None:
        if self._failed is not None and not self._failed.done():
            self._failed.set_exception(error)

    async def _report_problems(self) -> None:
        """Print what becomes wrong, and that it is over."""
        known: dict[tuple[str, ...], str] = {}
        while True:
            present = {
                status.path: status.message
                for status in self.health.report()
                if status.level is Level.DEGRADED
            }
            for path, message in present.items():
                if known.get(path) != message:
                    self._report(f"{self._name}: {message}")
            for path in known.keys() - present.keys():
                self._report(f"{self._name}: {' '.join(path)}: ok")
            known = present
            await asyncio.sleep(REPORT_SECONDS)
