"""Supervised tasks: a failed job restarts with back-off; a job that keeps failing ends the process.

All tasks run in one `asyncio.TaskGroup`, each in an empty `contextvars.Context` (a task would otherwise
carry the span that was current at its creation for life). A job that keeps failing requests an orderly
stop of the program with a non-zero exit status, so that the kubelet or systemd restarts it from a known
state. A job never ends another job directly.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import structlog

from cells.hive.health import Health
from cells.hive.lifecycle import STOP_TIMEOUT, Lifecycle

Job = Callable[[], Awaitable[None]]

log = structlog.get_logger("waggle.hive")


class RestartPolicy(msgspec.Struct, frozen=True):
    """Number and delay of the restarts of a failed job; times are in seconds.

    The n-th restart waits ``first * factor**(n-1)``, at most ``longest``, times a random factor
    in [0.5, 1). After a run of at least ``forget_after`` counting starts again.
    """

    restarts: int | None = 5
    """None for a job without which the others go on: it never ends the process."""
    first: float = 0.1
    factor: float = 2.0
    longest: float = 10.0
    forget_after: float = 60.0

    def delay(self, attempt: int, rng: random.Random) -> float:
        """Return the seconds to wait before restart number ``attempt`` (from 1)."""
        full = min(self.longest, self.first * self.factor ** min(attempt - 1, 64))
        return full * (0.5 + rng.random() / 2)


WITHOUT_END: Final = RestartPolicy(restarts=None)
"""Restarts for good: for a job without which the others go on."""


class JobFailedError(Exception):
    """A job failed more often than its policy allows; ends the agent with exit status 1."""

    def __init__(self, name: str, restarts: int, cause: BaseException) -> None:
        reason = f"{type(cause).__name__}: {cause}"
        super().__init__(f"job {name} failed for good after {restarts} restarts: {reason}")
        self.name = name


class Supervisor:
    """The task group of all jobs. ``give_up`` is called for a job that fails for good."""

    def __init__(self, give_up: Callable[[Exception], None], rng: random.Random) -> None:
        self._give_up = give_up
        self._rng = rng
        self._group: asyncio.TaskGroup | None = None
        self.restarts: dict[str, int] = {}
        """Restarts by job since the start, for the metric waggle_task_restarts_total."""

    def bind(self, group: asyncio.TaskGroup) -> None:
        """Run the tasks from here on in this group."""
        self._group = group

    def spawn(
        self, name: str, job: Job, health: Health, policy: RestartPolicy
    ) -> asyncio.Task[None]:
        """Start supervising; the task ends when the job returns, is cancelled or is given up."""
        if self._group is None:
            raise RuntimeError("jobs are started by the hive")
        supervised = self._supervise(name, job, health, policy)
        return self._group.create_task(supervised, name=name, context=contextvars.Context())

    async def _supervise(self, name: str, job: Job, health: Health, policy: RestartPolicy) -> None:
        self.restarts.setdefault(name, 0)
        loop = asyncio.get_running_loop()
        attempt = 0
        while True:
            began = loop.time()
            health.ok("running")
            try:
                await job()
            except asyncio.CancelledError as error:
                if _cancelled_by_us():
                    health.stopped("cancelled")
                    raise
                failure: BaseException = error
            except Exception as error:  # noqa: BLE001 - the supervision fence of every job
                failure = error
            else:
                health.stopped("finished")
                return
            if loop.time() - began >= policy.forget_after:
                attempt = 0
            attempt += 1
            reason = f"{type(failure).__name__}: {failure}"
            if policy.restarts is not None and attempt > policy.restarts:
                health.degraded(f"given up: {reason}")
                log.error("job given up", event_name="job.given_up", job=name, exc_info=failure)
                self._give_up(JobFailedError(name, policy.restarts, failure))
                return
            delay = policy.delay(attempt, self._rng)
            self.restarts[name] += 1
            of = "" if policy.restarts is None else f" of {policy.restarts}"
            health.degraded(f"{reason} (restart {attempt}{of} in {delay:.1f} s)")
            log.error(
                "job failed",
                event_name="job.failed",
                job=name,
                attempt=attempt,
                restart_in=round(delay, 3),
                exc_info=failure,
            )
            await asyncio.sleep(delay)


class Jobs:
    """Registers the jobs of one cell. Names are unique within the cell."""

    def __init__(
        self, cell: str, supervisor: Supervisor, lifecycle: Lifecycle, health: Health
    ) -> None:
        self._cell = cell
        self._supervisor = supervisor
        self._lifecycle = lifecycle
        self._health = health

    def add(self, name: str, job: Job, *, policy: RestartPolicy = RestartPolicy()) -> None:  # noqa: B008
        """Run ``job`` from here in the start order to here in the stop order."""
        full = f"{self._cell}.{name}"
        health = self._health.scope(name)
        tasks: list[asyncio.Task[None]] = []

        async def start() -> None:
            tasks.append(self._supervisor.spawn(full, job, health, policy))

        async def stop() -> None:
            task = tasks.pop()
            task.cancel()
            # Not `await task`: the supervisor handles the job's result, not the hook.
            _, late = await asyncio.wait({task}, timeout=STOP_TIMEOUT / 2)
            if late:
                log.warning("job does not end", event_name="job.stuck", job=full)

        self._lifecycle.append(f"job {full}", start=start, stop=stop)


def _cancelled_by_us() -> bool:
    """Whether a stop hook or the group has cancelled the task, not the job itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
