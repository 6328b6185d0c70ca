"""Events are written one by one; a rejected Event is given up, an outage delays the others."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from reactivex.subject import Subject

from cells.hive.rounds import in_slices
from reconcilers.report.event_objects import EventObjects
from reconcilers.report.events import (
    BURST,
    RESERVED_TOKENS,
    SECONDS_PER_TOKEN,
    EventCorrelator,
)
from reconcilers.target import ReconcileOutcome, Runner
from reconcilers.target.write_spread import WriteSpread
from resources.kubernetes import KubernetesError, StatusError
from resources.kubernetes.errors import Unreachable
from statedb import Database
from tests.reconcilers.report.test_events import WALL, down
from tests.support import looptime

PATH = "/apis/events.k8s.io/v1/namespaces/default/events"


class Api:
    """An API server that keeps Events."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}
        self.fails: list[KubernetesError] = []
        self.calls = 0

    def _called(self) -> None:
        self.calls += 1
        if self.fails:
            raise self.fails[0] if len(self.fails) == 1 else self.fails.pop(0)

    async def create(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        assert path == PATH
        self._called()
        name = content["metadata"]["name"]
        if name in self.events:
            raise StatusError(409, "already exists")
        self.events[name] = dict(content)
        return self.events[name]

    async def merge(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        self._called()
        name = path.removeprefix(f"{PATH}/")
        if name not in self.events:
            raise StatusError(404, "not found")
        self.events[name].update(content)
        return self.events[name]


class Job:
    """A correlator, an API server and the reconciler between them, in virtual time."""

    def __init__(self) -> None:
        self.events = EventCorrelator("n1", WriteSpread(lambda: 0.0, lambda: 1))
        self.api = Api()
        self.outcomes: list[ReconcileOutcome] = []
        self.recorded: Subject[None] = Subject()

        def now() -> float:
            return asyncio.get_running_loop().time()

        events = EventObjects(
            self.events, self.api, self.recorded, now=now, wall=lambda: WALL + now()
        )
        rng = random.Random(1)  # noqa: S311
        self.runner = Runner(Database(), None, [events], rng, report=self.outcomes.append)

    def record(self, peer: str = "p", **fields: Any) -> None:  # noqa: ANN401
        now = asyncio.get_running_loop().time()
        self.events.record(down(peer, **fields), now, WALL + now)

    @property
    def failure(self) -> str:
        (report,) = self.runner.reports()
        return "" if report.failure is None else report.failure[1]

    @property
    def statuses(self) -> int:
        (report,) = self.runner.reports()
        return report.objects

    async def until(self, end: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < end:
            summary = await in_slices(self.runner.slices(loop.time))
            pause = end if summary.retry_at is None else max(0.0, summary.retry_at - loop.time())
            await asyncio.sleep(min(end - loop.time(), pause))


def run(scenario: Callable[[Job], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(Job())

    looptime.run(main())


def test_an_event_is_created_and_its_series_continued() -> None:
    async def scenario(job: Job) -> None:
        job.record()
        await job.until(1)
        for _ in range(4):
            job.record()
        await job.until(70)
        (event,) = job.api.events.values()
        assert event["series"]["count"] == 5
        assert job.api.calls == 2

    run(scenario)


def test_events_during_an_outage_are_written_after_it() -> None:
    async def scenario(job: Job) -> None:
        job.api.fails = [Unreachable("https://x", "refused")]
        job.record()
        await job.until(300)
        job.record()
        assert job.api.calls < 20
        assert job.failure.endswith("refused")
        job.api.fails = []
        await job.until(600)
        (event,) = job.api.events.values()
        assert event["series"]["count"] == 2
        assert job.failure == ""

    run(scenario)


def test_an_event_of_another_agent_is_not_written_twice() -> None:
    async def scenario(job: Job) -> None:
        job.record(shared=True)
        await job.until(1)
        other = Job()
        other.api.events = job.api.events
        other.record(shared=True)
        await other.until(100)
        assert (job.api.calls, other.api.calls) == (1, 1)
        assert other.outcomes == []

    run(scenario)


def test_a_rejected_event_is_given_up_and_named_and_delays_no_other() -> None:
    async def scenario(job: Job) -> None:
        job.api.fails = [StatusError(403, "User cannot"), StatusError(422, "bad")]
        job.record("a")
        await job.until(1)
        assert job.failure == "may not create events: User cannot"
        assert [(one.given_up, one.repeated) for one in job.outcomes] == [(True, False)]
        assert job.events.dropped == 1
        job.api.fails = []
        job.record("b")
        await job.until(100)
        assert [e["note"] for e in job.api.events.values()] == ["peer b is down"]
        assert job.failure == ""
        assert [one.written for one in job.outcomes] == [False, True]

    run(scenario)


def test_the_second_event_that_is_rejected_for_one_reason_is_a_repetition() -> None:
    async def scenario(job: Job) -> None:
        job.api.fails = [StatusError(403, "User cannot")]
        job.record("a")
        await job.until(1)
        job.record("b")
        await job.until(2)
        assert [one.repeated for one in job.outcomes] == [False, True]

    run(scenario)


def test_an_event_that_is_over_has_no_status() -> None:
    async def scenario(job: Job) -> None:
        for number in range(3):
            job.record(f"p{number}", shared=True)
        await job.until(1)
        assert job.statuses == 3
        for number in range(3):
            job.events.resolve(down(f"p{number}", shared=True))
        await job.until(2)
        assert job.statuses == 0

    run(scenario)


def test_as_many_events_are_written_as_there_are_tokens() -> None:
    async def scenario(job: Job) -> None:
        for number in range(BURST + 3):
            job.record(f"p{number}")
        await job.until(1)
        assert len(job.api.events) == BURST
        await job.until(1 + 3 * SECONDS_PER_TOKEN)
        assert len(job.api.events) == BURST + 3

    run(scenario)


def test_an_event_of_a_tenants_object_that_waits_stops_no_other() -> None:
    async def scenario(job: Job) -> None:
        for number in range(BURST):
            job.record(f"s{number}", of_tenant=True)
        await job.until(1)
        assert len(job.api.events) == BURST - RESERVED_TOKENS
        for number in range(RESERVED_TOKENS):
            job.record(f"p{number}")
        await job.until(2)
        assert len(job.api.events) == BURST

    run(scenario)


def test_a_server_error_is_retried_after_its_retry_after() -> None:
    async def scenario(job: Job) -> None:
        job.api.fails = [StatusError(503, "later", 30.0)]
        job.record()
        await job.until(29)
        assert job.api.calls == 1
        job.api.fails = []
        await job.until(100)
        assert len(job.api.events) == 1

    run(scenario)


def test_a_series_whose_event_expired_starts_again() -> None:
    async def scenario(job: Job) -> None:
        job.record()
        await job.until(1)
        job.api.events.clear()
        job.record()
        await job.until(70)
        (event,) = job.api.events.values()
        assert event["series"]["count"] == 2

    run(scenario)
