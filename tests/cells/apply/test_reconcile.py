"""The runners of an agent: their reconcilers are listed together, for as long as they run."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from reactivex.subject import Subject

from cells.apply.api import reconciler_resource
from cells.apply.reconcile import Runners
from reconcilers.report.event_objects import EventObjects
from reconcilers.report.events import EventCorrelator
from reconcilers.target import Runner
from reconcilers.target.fleet import WriteSpread
from statedb import Database


def runner() -> Runner:
    events = EventCorrelator("n1", WriteSpread(lambda: 0.0, lambda: 1))
    client: Any = SimpleNamespace()
    objects = EventObjects(events, client, Subject(), now=lambda: 0.0, wall=lambda: 0.0)
    return Runner(Database(), None, [objects])


def listed(runners: Runners) -> list[tuple[str, str]]:
    items: Any = reconciler_resource(runners).read({})
    return [(item.name, item.target) for item in items]


def test_a_runner_is_listed_while_it_runs() -> None:
    async def scenario() -> None:
        runners, reported = Runners(runner()), asyncio.Event()
        assert listed(runners) == [("event", "API server")]
        job = asyncio.create_task(runners.run(runner(), reported.set))
        await reported.wait()
        assert listed(runners) == [("event", "API server")] * 2
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        assert listed(runners) == [("event", "API server")]

    asyncio.run(scenario())
