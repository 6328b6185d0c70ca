"""Checks of the leader: requests to the API server now and then, with their reports in health and log.

A check is a value with a name and a pass; what is the same for all of them, that only the leader makes
passes, the pauses and the retry after an error, is here once.
"""

from __future__ import annotations

import asyncio
import functools
import random
from typing import Final, Protocol

from cells.hive import Group
from cells.hive.jobs import Jobs
from cells.operator.election import Leadership
from cells.sources.api_server import Kubernetes
from resources.kubernetes import KubernetesError, Writer

MANAGER: Final = "waggle-operator"
"""The field manager of an operator's writes, and the name of the Lease."""
RETRY_SECONDS: Final = 30.0
"""After a pass that failed."""


class LeaderCheck(Protocol):
    """A member of the group of checks; each of them is a job of its own."""

    name: str
    """Of the job."""

    @property
    def needed(self) -> bool:
        """False if no dialect has anything to check."""

    async def run(self, writer: Writer) -> float:
        """Make a pass; returns the seconds until the next one, before jitter.

        Raises `KubernetesError` for an API server that does not answer, which the kubernetes cell
        reports.
        """


class LeaderChecks:
    """Makes the passes of all checks while this operator leads."""

    def __init__(
        self,
        checks: Group[LeaderCheck],
        kubernetes: Kubernetes,
        leadership: Leadership,
        jobs: Jobs,
    ) -> None:
        self._kubernetes = kubernetes
        self._leadership = leadership
        for check in checks:
            if check.needed:
                jobs.add(check.name, functools.partial(self._repeat, check))

    async def _repeat(self, check: LeaderCheck) -> None:
        rng = random.SystemRandom()
        while True:
            await self._leadership.gained.wait()
            try:
                async with self._kubernetes.writer(MANAGER) as writer:
                    pause = await check.run(writer)
            except KubernetesError:
                pause = RETRY_SECONDS
            await asyncio.sleep(pause * rng.uniform(0.75, 1.25))
