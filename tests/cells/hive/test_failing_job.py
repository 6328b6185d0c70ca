"""A source that fails, or a reader of it that does, ends the run; the next run begins afresh."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable

import pytest

from cells.hive.failing_job import Watch


class Scripted:
    """Read by `read`: each run performs the next action, then waits to be cancelled."""

    def __init__(self) -> None:
        self.first: Callable[[], None] = lambda: None
        self.last: Callable[[], None] = lambda: None
        self.reading = False
        self.started = asyncio.Event()
        self.runs = 0
        self.watch = Watch(self.read)

    async def read(self) -> None:
        self.runs += 1
        self.reading = True
        self.started.set()
        try:
            self.first()
            await asyncio.Event().wait()
        finally:
            self.reading = False
            self.last()

    async def begin(self) -> asyncio.Task[None]:
        """Start a run, and return when the source is being read."""
        self.started = asyncio.Event()
        task = asyncio.create_task(self.watch.run())
        await self.started.wait()
        return task


@pytest.fixture
def source() -> Scripted:
    return Scripted()


def in_loop(scenario: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(120):
            await scenario()

    asyncio.run(whole())


def test_an_error_of_the_source_ends_the_run_with_it(source: Scripted) -> None:
    def fail() -> None:
        raise OSError("no such directory")

    source.first = fail

    async def scenario() -> None:
        with pytest.raises(OSError, match="no such directory"):
            await source.watch.run()

    in_loop(scenario)


def test_an_error_of_a_subscriber_ends_the_run_after_the_source_has_stopped(
    source: Scripted,
) -> None:
    async def scenario() -> None:
        run = await source.begin()
        source.watch.fail(RuntimeError("no room"))
        with pytest.raises(RuntimeError, match="no room"):
            await run
        assert not source.reading

    in_loop(scenario)


def test_the_first_error_of_a_run_counts(source: Scripted) -> None:
    def fail() -> None:
        source.watch.fail(RuntimeError("first"))
        source.watch.fail(RuntimeError("second"))
        raise OSError("third")

    source.first = fail

    async def scenario() -> None:
        with pytest.raises(RuntimeError, match="first"):
            await source.watch.run()

    in_loop(scenario)


def test_a_run_after_a_failed_one_starts_without_its_error(source: Scripted) -> None:
    async def scenario() -> None:
        source.watch.fail(RuntimeError("before anything ran"))
        run = await source.begin()
        source.watch.fail(RuntimeError("once"))
        with pytest.raises(RuntimeError, match="once"):
            await run
        source.watch.fail(RuntimeError("between two runs"))
        run = await source.begin()
        for _ in range(10):
            await asyncio.sleep(0)
        assert (source.runs, source.reading, run.done()) == (2, True, False)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert not source.reading

    in_loop(scenario)


def test_an_error_while_the_source_stops_is_ignored(
    source: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    source.last = lambda: source.watch.fail(RuntimeError("too late"))

    async def scenario() -> None:
        run = await source.begin()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    in_loop(scenario)
    # asyncio logs an exception that was never retrieved when its future is deleted.
    source.watch = Watch(source.read)
    gc.collect()
    assert caplog.records == []
