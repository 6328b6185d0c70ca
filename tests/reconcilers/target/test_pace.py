"""Objects of an asynchronous target are written at the pace of their reconciler."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from itertools import pairwise

import pytest
from msgspec.structs import replace
from reactivex.subject import Subject

from cells.hive.rounds import in_slices
from reconcilers.sliced_work import Slices, at_once
from reconcilers.target import (
    Description,
    NotNow,
    Pace,
    ReconcileError,
    ReconcileOutcome,
    RoundSummary,
    Runner,
)
from reconcilers.target.reconciler import ObjectKey, Parts
from reconcilers.target.single_value import SingleValue
from statedb import Database, Snapshot
from tests.reconcilers.target.failures import failures
from tests.support import looptime


class Remote(SingleValue):
    """A server that answers after some time; what shall be there comes as a stream of changes."""

    description = Description("entry", 10, (), "server", "entries of a server")

    def __init__(self, pace: Pace = Pace(), *, ordered: bool = False) -> None:  # noqa: B008  frozen
        self.stream: Subject[None] = Subject()
        self.description = replace(
            Remote.description, pace=pace, ordered=ordered, stream=self.stream
        )
        self.desired_entries: dict[str, str] = {}
        self.entries: dict[str, str] = {}
        self.fails: dict[str, Exception] = {}
        """By the name of an entry; ``*`` is the listing."""
        self.calls: list[tuple[float, str]] = []
        """Times and names of the writes; the listing is ``*``."""
        self.seconds_of_answer = 0.0
        self.has_parent = True
        self._changed: list[str] = []

    def want(self, **entries: str) -> None:
        self.desired_entries |= entries
        self._changed += entries
        self.stream.on_next(None)

    def times(self, name: str) -> list[float]:
        return [when for when, called in self.calls if called == name]

    async def _called(self, name: str) -> None:
        self.calls.append((asyncio.get_running_loop().time(), name))
        await asyncio.sleep(self.seconds_of_answer)
        if name in self.fails:
            raise self.fails[name]

    def changes(self, snapshot: Snapshot) -> Slices[dict[ObjectKey, Parts]]:
        del snapshot
        changed, self._changed = self._changed, []
        return at_once({(name,): None for name in changed})

    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        del snapshot
        return [(name,) for name in self.desired_entries]

    async def actual_objects(self) -> Iterable[ObjectKey]:
        await self._called("*")
        return [(name,) for name in self.entries]

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        del snapshot
        return key[0] in self.desired_entries

    def possible(self, key: ObjectKey) -> bool:
        del key
        return self.has_parent

    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> str:
        del snapshot
        return self.desired_entries[key[0]]

    def actual_value(self, key: ObjectKey) -> str | None:
        return self.entries.get(key[0])

    async def set_value(self, key: ObjectKey, value: str) -> None:
        await self._called(key[0])
        self.entries[key[0]] = value

    async def delete(self, key: ObjectKey) -> None:
        await self._called(key[0])
        del self.entries[key[0]]


class Job:
    """A runner of one target over some virtual time."""

    def __init__(self, target: Remote) -> None:
        self.target = target
        self.outcomes: list[ReconcileOutcome] = []
        self.runner = Runner(Database(), None, [target], report=self.outcomes.append)
        self._changed = asyncio.Event()
        (stream,) = self.runner.wakes()
        stream.subscribe(lambda _: self._changed.set())

    async def round(self) -> RoundSummary:
        self._changed.clear()
        return await in_slices(self.runner.slices(asyncio.get_running_loop().time))

    async def until(self, end: float) -> None:
        """Do a round after each change and whenever an object is due."""
        loop = asyncio.get_running_loop()
        while loop.time() < end:
            due = (await self.round()).retry_at
            try:
                async with asyncio.timeout_at(end if due is None else min(due, end)):
                    await self._changed.wait()
            except TimeoutError:
                pass


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    looptime.run(main())


def test_other_jobs_go_on_while_a_round_waits_for_the_target() -> None:
    async def scenario() -> None:
        target = Remote()
        target.seconds_of_answer = 1.0
        target.want(a="1", b="2")
        task = asyncio.create_task(Job(target).round())
        await asyncio.sleep(0.5)
        assert not task.done()
        summary = await task
        assert (summary.changed, target.entries) == (True, {"a": "1", "b": "2"})
        assert [name for _, name in target.calls] == ["*", "a", "b"]

    run(scenario)


def test_what_the_target_lists_and_nothing_wants_is_deleted() -> None:
    async def scenario() -> None:
        target = Remote()
        target.entries = {"stray": "x"}
        await Job(target).round()
        assert target.entries == {}

    run(scenario)


def test_changes_in_the_time_of_settling_are_one_write_and_writes_have_an_interval() -> None:
    async def scenario() -> None:
        target = Remote(Pace(settle=1.0, interval=5.0))
        job = Job(target)
        await job.until(10)
        for tick in range(300):
            target.want(a=str(tick))
            await job.until(10 + (tick + 1) / 10)
        times = target.times("a")
        assert times[0] == pytest.approx(11.0)
        assert all(after - before >= 5.0 for before, after in pairwise(times))
        assert len(times) == 6

    run(scenario)


def test_an_object_that_is_not_due_waits_and_has_not_failed() -> None:
    async def scenario() -> None:
        target = Remote()
        target.fails["a"] = NotNow(100.0)
        target.want(a="1", b="2")
        job = Job(target)
        summary = await job.round()
        assert (failures(job.runner), summary.retry_at) == (0, 100.0)
        assert target.entries == {"b": "2"}
        target.fails.clear()
        await job.until(101)
        assert target.times("a") == [0.0, 100.0]

    run(scenario)


def test_a_target_at_its_limit_stops_the_round_and_no_object_is_lost() -> None:
    async def scenario() -> None:
        target = Remote()
        target.fails["b"] = NotNow(10.0, all_objects=True)
        target.want(a="1", b="2", c="3")
        job = Job(target)
        await job.until(9)
        assert target.entries == {"a": "1"}
        target.fails.clear()
        await job.until(11)
        assert target.entries == {"a": "1", "b": "2", "c": "3"}
        assert target.times("*") == [0.0]

    run(scenario)


def test_an_error_of_the_target_pauses_all_objects_and_lists_them_again() -> None:
    async def scenario() -> None:
        target = Remote(Pace(first_retry=1.0, jitter=(1.0, 1.0)))
        job = Job(target)
        await job.round()
        target.fails["b"] = ReconcileError("no answer", all_objects=True, retry_after=5.0)
        target.want(a="1", b="2", c="3")
        await job.until(4)
        target.want(d="4")
        await job.until(5.5)
        assert [name for _, name in target.calls] == ["*", "a", "b"]
        (report,) = job.runner.reports()
        assert report.failure == (("*",), "no answer")
        target.fails.clear()
        await job.until(6.5)
        assert [name for _, name in target.calls][3:] == ["*", "b", "c", "d"]
        assert [
            (o.key, o.text, o.attempts, o.recovered) for o in job.outcomes if not o.written
        ] == [
            (("*",), "no answer", 1, False),
            (("*",), "", 0, True),
        ]

    run(scenario)


def test_a_listing_that_fails_deletes_nothing_and_is_retried_with_growing_pauses() -> None:
    async def scenario() -> None:
        target = Remote(Pace(first_retry=1.0, last_retry=60.0, jitter=(1.0, 1.0)))
        target.entries = {"stray": "x"}
        target.fails["*"] = ReconcileError("forbidden")
        job = Job(target)
        await job.until(100)
        assert target.times("*") == [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0]
        assert target.entries == {"stray": "x"}
        assert [outcome.repeated for outcome in job.outcomes][:3] == [False, True, True]

    run(scenario)


def test_an_object_that_changes_while_the_target_is_at_its_limit_is_written_after_it() -> None:
    async def scenario() -> None:
        target = Remote()
        job = Job(target)
        await job.round()
        target.fails["a"] = NotNow(10.0, all_objects=True)
        target.want(a="1", b="2")
        await job.until(5)
        target.want(a="3")
        await job.until(6)
        target.fails.clear()
        await job.until(11)
        assert target.entries == {"a": "3", "b": "2"}
        assert target.times("a") == [0.0, 10.0]

    run(scenario)


def test_an_object_behind_a_listing_that_fails_makes_no_rounds() -> None:
    async def scenario() -> None:
        first, second = (
            Remote(Pace(first_retry=60.0, last_retry=60.0, jitter=(1.0, 1.0))),
            Remote(Pace(settle=1.0)),
        )
        second.description = replace(second.description, name="later", order=20)
        runner = Runner(Database(), None, [first, second])
        clock = asyncio.get_running_loop().time
        first.fails["*"] = ReconcileError("forbidden")
        await in_slices(runner.slices(clock))
        second.want(a="1")
        await in_slices(runner.slices(clock))
        await asyncio.sleep(2)
        assert (await in_slices(runner.slices(clock))).retry_at == 60.0
        first.fails.clear()
        await asyncio.sleep(58)
        await in_slices(runner.slices(clock))
        assert second.entries == {"a": "1"}

    run(scenario)


@pytest.mark.parametrize(("retry_changed", "writes"), [(True, 11), (False, 3)])
def test_a_change_of_a_failed_object_waits_for_the_pause_of_its_pace(
    retry_changed: bool, writes: int
) -> None:
    async def scenario() -> None:
        pace = Pace(first_retry=4.0, jitter=(1.0, 1.0), retry_changed=retry_changed)
        target = Remote(pace)
        target.fails["a"] = ReconcileError("rejected")
        job = Job(target)
        for second in range(10):
            target.want(a=str(second))
            await job.until(second + 1.0)
        await job.until(12.5)
        assert len(target.times("a")) in (writes - 1, writes)

    run(scenario)


def test_changes_of_an_object_that_fails_have_the_interval_of_writes() -> None:
    async def scenario() -> None:
        target = Remote(Pace(interval=2.0, first_retry=60.0))
        target.fails["a"] = ReconcileError("rejected")
        job = Job(target)
        for tick in range(100):
            target.want(a=str(tick))
            await job.until((tick + 1) / 10)
        times = target.times("a")
        assert all(after - before >= 2.0 for before, after in pairwise(times))
        assert len(times) == 5

    run(scenario)


def test_a_failed_object_that_waits_for_another_object_makes_no_rounds() -> None:
    async def scenario() -> None:
        target = Remote()
        target.fails["a"] = ReconcileError("rejected")
        target.want(a="1")
        job = Job(target)
        failed = await job.round()
        assert failed.retry_at is not None
        target.has_parent = False
        await asyncio.sleep(failed.retry_at)
        assert (await job.round()).retry_at is None
        target.has_parent = True
        target.fails.clear()
        await job.round()
        assert target.entries == {"a": "1"}

    run(scenario)


def test_objects_are_compared_again_and_listed_again_without_a_change() -> None:
    async def scenario() -> None:
        target = Remote(Pace(compare=10.0, list_again=lambda: 35.0))
        target.want(a="1")
        job = Job(target)
        await job.until(5)
        target.entries["a"] = "changed by another program"
        target.entries["stray"] = "x"
        await job.until(11)
        assert target.entries == {"a": "1", "stray": "x"}
        await job.until(36)
        assert target.entries == {"a": "1"}
        assert target.times("*") == [0.0, 35.0]

    run(scenario)


def test_an_object_that_is_not_as_it_was_listed_has_all_listed_again_soon() -> None:
    async def scenario() -> None:
        target = Remote(Pace(first_retry=1.0, jitter=(1.0, 1.0)))
        target.fails["a"] = ReconcileError("conflict", outdated=True)
        target.want(a="1")
        job = Job(target)
        await job.until(0.5)
        target.fails.clear()
        await job.until(2)
        assert [name for _, name in target.calls] == ["*", "a", "*", "a"]

    run(scenario)


def test_objects_are_written_in_the_order_of_their_names_or_in_that_of_the_reconciler() -> None:
    async def scenario() -> None:
        for ordered, names in ((False, ["a", "b", "c"]), (True, ["c", "a", "b"])):
            target = Remote(ordered=ordered)
            target.want(c="1", a="2", b="3")
            await Job(target).round()
            assert [name for _, name in target.calls[1:]] == names

    run(scenario)
