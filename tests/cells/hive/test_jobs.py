"""Supervised jobs: restarts with back-off, health, and the deliberate end of the process."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import random
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from cells.hive import Health, Level
from cells.hive.jobs import WITHOUT_END, JobFailedError, Jobs, RestartPolicy, Supervisor
from cells.hive.lifecycle import Lifecycle
from tests.support import looptime


class Bench:
    """A supervisor with a group, without a hive around it."""

    def __init__(self) -> None:
        self.given_up: list[Exception] = []
        self.health = Health()
        self.lifecycle = Lifecycle()
        self.supervisor = Supervisor(self.given_up.append, random.Random(1))  # noqa: S311
        self.jobs = Jobs("cell", self.supervisor, self.lifecycle, self.health)

    async def run(self, seconds: float) -> None:
        """Start all, let time pass, stop all."""
        async with asyncio.TaskGroup() as group:
            self.supervisor.bind(group)
            await self.lifecycle.start()
            await asyncio.sleep(seconds)
            await self.lifecycle.stop()


def failing(times: list[float], count: int) -> Callable[[], Awaitable[None]]:
    """Make a job that fails ``count`` times and then runs on."""

    async def job() -> None:
        times.append(asyncio.get_running_loop().time())
        if len(times) <= count:
            raise ValueError(f"failure {len(times)}")
        await asyncio.Event().wait()

    return job


def test_f35_failed_job_is_restarted_and_the_others_are_untouched() -> None:
    bench = Bench()
    flaky: list[float] = []
    steady: list[float] = []
    bench.jobs.add("flaky", failing(flaky, 3))
    bench.jobs.add("steady", failing(steady, 0))
    seen: list[tuple[object, dict[str, int]]] = []

    async def scenario() -> None:
        async with asyncio.TaskGroup() as group:
            bench.supervisor.bind(group)
            await bench.lifecycle.start()
            await asyncio.sleep(30)
            status = bench.health.scope("flaky").status
            seen.append((status and status.level, dict(bench.supervisor.restarts)))
            await bench.lifecycle.stop()

    looptime.run(scenario())
    assert seen == [(Level.OK, {"cell.flaky": 3, "cell.steady": 0})]
    assert len(steady) == 1
    assert bench.given_up == []
    waits = [later - earlier for earlier, later in itertools.pairwise(flaky)]
    for wait, full in zip(waits, (0.1, 0.2, 0.4), strict=True):
        assert full / 2 <= wait < full


def test_a_job_without_which_others_go_on_never_stops_the_process() -> None:
    bench = Bench()
    times: list[float] = []
    bench.jobs.add("broken", failing(times, 9999), policy=WITHOUT_END)
    looptime.run(bench.run(600))
    assert len(times) > 50
    assert bench.given_up == []


def test_f35_after_too_many_restarts_the_process_stops() -> None:
    bench = Bench()
    times: list[float] = []
    bench.jobs.add("broken", failing(times, 99), policy=RestartPolicy(restarts=2))
    looptime.run(bench.run(60))
    assert len(times) == 3
    (error,) = bench.given_up
    assert isinstance(error, JobFailedError)
    assert str(error) == ("job cell.broken failed for good after 2 restarts: ValueError: failure 3")
    status = bench.health.scope("broken").status
    assert status is not None
    assert status.level is Level.DEGRADED
    assert "ValueError: failure 3" in status.message


def test_a_long_run_resets_the_count_of_restarts() -> None:
    bench = Bench()
    runs: list[float] = []

    async def hourly() -> None:
        runs.append(asyncio.get_running_loop().time())
        await asyncio.sleep(3600)
        raise ConnectionError("gone")

    bench.jobs.add("hourly", hourly, policy=RestartPolicy(restarts=1, forget_after=600))
    looptime.run(bench.run(10 * 3600))
    assert bench.given_up == []
    assert len(runs) == 10


def test_a_job_that_cancels_itself_has_failed() -> None:
    bench = Bench()
    runs: list[int] = []

    async def odd() -> None:
        runs.append(1)
        if len(runs) == 1:
            raise asyncio.CancelledError
        await asyncio.Event().wait()

    bench.jobs.add("odd", odd)
    looptime.run(bench.run(5))
    assert len(runs) == 2


def test_a_finished_job_is_not_restarted_and_stops_quietly() -> None:
    bench = Bench()

    async def once() -> None:
        return

    bench.jobs.add("once", once)
    looptime.run(bench.run(5))
    status = bench.health.scope("once").status
    assert status is not None
    assert (status.level, status.message) == (Level.STOPPED, "finished")


def test_a_job_does_not_inherit_the_context_of_its_creator() -> None:
    span: contextvars.ContextVar[str] = contextvars.ContextVar("span", default="none")
    span.set("start-up")
    seen: list[str] = []
    bench = Bench()

    async def look() -> None:
        seen.append(span.get())

    bench.jobs.add("look", look)
    looptime.run(bench.run(1))
    assert seen == ["none"]


@given(st.integers(min_value=1, max_value=2000), st.integers())
def test_the_delay_never_exceeds_its_limit_and_never_vanishes(attempt: int, seed: int) -> None:
    policy = RestartPolicy()
    delay = policy.delay(attempt, random.Random(seed))  # noqa: S311
    assert policy.first / 2 <= delay < policy.longest


def test_a_job_cannot_be_started_without_a_group() -> None:
    bench = Bench()
    bench.jobs.add("x", asyncio.Event().wait)  # type: ignore[arg-type]  # never awaited here
    with pytest.raises(RuntimeError, match="started by the hive"):
        looptime.run(bench.lifecycle.start())


def test_a_job_that_does_not_end_is_named_and_delays_the_end_for_a_while_only() -> None:
    bench = Bench()

    async def stuck() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.sleep(100)

    bench.jobs.add("stuck", stuck)
    took: list[float] = []

    async def scenario() -> None:
        clock = asyncio.get_running_loop().time
        async with asyncio.TaskGroup() as group:
            bench.supervisor.bind(group)
            await bench.lifecycle.start()
            await asyncio.sleep(1)
            began = clock()
            with capture_logs() as logs:
                await bench.lifecycle.stop()
            took.append(clock() - began)
        assert [(line["event_name"], line.get("job")) for line in logs] == [
            ("job.stuck", "cell.stuck"),
            ("hive.slow_hook", None),
        ]

    looptime.run(scenario())
    assert took == [2.5]


def test_each_failure_is_a_line_and_the_state_of_the_job() -> None:
    bench = Bench()
    bench.jobs.add("flaky", failing([], 2), policy=RestartPolicy(restarts=1))
    with capture_logs() as logs:
        looptime.run(bench.run(60))
    first, second = logs
    assert first.pop("exc_info").args == ("failure 1",)
    assert 0.05 <= first.pop("restart_in") < 0.1
    assert first == {
        "event": "job failed",
        "event_name": "job.failed",
        "log_level": "error",
        "job": "cell.flaky",
        "attempt": 1,
    }
    assert (second["event_name"], second["job"]) == ("job.given_up", "cell.flaky")
    assert second["exc_info"].args == ("failure 2",)
    (error,) = bench.given_up
    assert str(error) == "job cell.flaky failed for good after 1 restarts: ValueError: failure 2"
    (status,) = bench.health.report()
    assert status.path == ("flaky",)
    assert (status.level, status.message) == (Level.DEGRADED, "given up: ValueError: failure 2")
    assert bench.supervisor.restarts == {"cell.flaky": 1}


def test_the_delays_of_restarts_double_up_to_ten_seconds() -> None:
    half = random.Random()  # noqa: S311
    half.random = lambda: 0.0  # type: ignore[method-assign]
    policy = RestartPolicy()
    delays = [policy.delay(attempt, half) for attempt in (1, 2, 3, 7, 8, 1000)]
    assert delays == [0.05, 0.1, 0.2, 3.2, 5.0, 5.0]
    assert (policy.restarts, policy.forget_after) == (5, 60.0)
