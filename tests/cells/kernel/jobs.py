"""Jobs of the kernel cell that a test runs itself."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import cast

from cells.hive.jobs import Jobs, RestartPolicy


class TestJobs:
    """Stands in for `Jobs`."""

    __test__ = False

    def __init__(self) -> None:
        self.jobs: dict[str, Callable[[], Awaitable[None]]] = {}

    def add(
        self,
        name: str,
        job: Callable[[], Awaitable[None]],
        *,
        policy: RestartPolicy = RestartPolicy(),  # noqa: B008
    ) -> None:
        """Take a job."""
        del policy
        self.jobs[name] = job

    @property
    def given(self) -> Jobs:
        """What a constructor takes."""
        return cast("Jobs", self)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run all jobs within the context."""
        tasks = [asyncio.ensure_future(job()) for job in self.jobs.values()]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
