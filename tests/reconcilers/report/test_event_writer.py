"""Events are written one by one; a rejected one is dropped, and after an outage waiting ones follow."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from reconcilers.report.event_writer import EventOutcome, EventWriter
from reconcilers.report.events import EventCorrelator
from reconcilers.target.fleet import WriteSpread
from resources.kubernetes import KubernetesError, StatusError
from resources.kubernetes.errors import Unreachable
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
    """A correlator, an API server and the writer between them, in virtual time."""

    def __init__(self) -> None:
        self.events = EventCorrelator("n1", WriteSpread(lambda: 0.0, lambda: 1))
        self.api = Api()
        self.outcomes: list[EventOutcome] = []
        self.writer = EventWriter(
            self.events,
            self.api,
            random.Random(1),  # noqa: S311
            report=self.outcomes.append,
            now=lambda: asyncio.get_running_loop().time(),
            wall=lambda: WALL + asyncio.get_running_loop().time(),
        )

    def record(self, peer: str = "p", **fields: Any) -> None:  # noqa: ANN401
        now = asyncio.get_running_loop().time()
        self.events.record(down(peer, **fields), now, WALL + now)

    async def until(self, end: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < end:
            pause = await self.writer.step()
            await asyncio.sleep(min(end - loop.time(), end if pause is None else pause))


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
        assert job.writer.failure.endswith("refused; Events are kept and written later")
        job.api.fails = []
        await job.until(600)
        (event,) = job.api.events.values()
        assert event["series"]["count"] == 2
        assert job.writer.failure == ""

    run(scenario)


def test_an_event_of_another_agent_is_not_written_twice() -> None:
    async def scenario(job: Job) -> None:
        job.record(shared=True)
        await job.until(1)
        other = Job()
        other.api = job.api
        other.writer._client = job.api
        other.record(shared=True)
        await other.until(100)
        assert job.api.calls == 2
        assert other.outcomes == []

    run(scenario)


def test_a_rejected_event_is_dropped_and_named_and_delays_no_other() -> None:
    async def scenario(job: Job) -> None:
        job.api.fails = [StatusError(403, "User cannot"), StatusError(422, "bad")]
        job.record("a")
        await job.until(1)
        assert job.writer.failure == "may not create events: User cannot, 1 dropped"
        assert [(one.rejected, one.repeated) for one in job.outcomes] == [(True, False)]
        job.api.fails = []
        job.record("b")
        await job.until(100)
        assert [e["note"] for e in job.api.events.values()] == ["peer b is down"]
        assert job.writer.failure == ""
        assert job.writer.summary == "1 written, 1 dropped"

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
