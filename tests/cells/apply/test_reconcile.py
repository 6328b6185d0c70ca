"""The runners of a program: their reconcilers are listed together, for as long as they run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from reactivex.subject import Subject

from cells.apply.api import reconciler_resource
from cells.apply.reconcile import Runners, reconcile
from cells.hive.rounds import in_slices
from reconcilers.report.event_objects import EventObjects
from reconcilers.report.events import EventCorrelator
from reconcilers.target import Runner
from reconcilers.target.write_spread import WriteSpread
from statedb import Database
from tests.reconcilers.target.file_target import Files, Line


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


def test_each_reconciler_has_the_numbers_of_its_objects_as_metrics(tmp_path: Path) -> None:
    database = Database()
    files = Files(database, tmp_path)
    runners = Runners(Runner(database, None, [files]))

    def samples() -> dict[str, float]:
        found = [sample for metric in runners.collect() for sample in metric.samples]
        assert {sample.labels["reconciler"] for sample in found} == {"file"}
        return {sample.name.removeprefix("waggle_reconcile_"): sample.value for sample in found}

    assert samples() == {"objects": 0, "waiting_objects": 0, "failed_objects": 0}
    with database.write(files.lines) as txn:
        for name in ("a", "b", "c/c"):
            files.lines.upsert(txn, Line(name, "text"))
    asyncio.run(in_slices(runners._runners[0].slices(lambda: 0.0)))
    assert samples() == {"objects": 3, "waiting_objects": 1, "failed_objects": 1}


def test_a_round_that_leaves_work_for_the_next_one_ends_its_turn(tmp_path: Path) -> None:
    database = Database()
    files = Files(database, tmp_path)

    async def scenario() -> None:
        loop, done, turns = asyncio.get_running_loop(), asyncio.Event(), 0
        written: list[int] = []
        wrote = files.set_value

        def write(key: tuple[str, ...], value: str) -> None:
            wrote(key, value)
            written.append(turns)
            if len(written) < 5:
                add()
            else:
                done.set()

        def add() -> None:
            with database.write(files.lines) as txn:
                files.lines.upsert(txn, Line(f"line{len(written)}", "text"))

        def count() -> None:
            nonlocal turns
            turns += 1
            loop.call_soon(count)

        files.set_value = write  # type: ignore[method-assign]
        job = asyncio.create_task(reconcile(Runner(database, None, [files]), lambda: None))
        await asyncio.sleep(0)
        count()
        add()
        await done.wait()
        job.cancel()
        assert len(set(written)) == 5, "each round has a turn of its own"

    asyncio.run(scenario())
