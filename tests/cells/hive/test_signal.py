"""The bridge from observables to jobs."""

from __future__ import annotations

import asyncio
import threading

import pytest
from reactivex.subject import Subject

from cells.hive.signal import Signal
from tests.support import looptime


def test_many_emissions_are_one_wake_up() -> None:
    subject: Subject[int] = Subject()
    threads = set(threading.enumerate())
    wakes: list[float] = []

    async def consume() -> None:
        with Signal(subject) as signal:
            while True:
                await signal.wait()
                wakes.append(asyncio.get_running_loop().time())

    async def scenario() -> None:
        task = asyncio.create_task(consume())
        await asyncio.sleep(1)
        for number in range(10_000):
            subject.on_next(number)
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait({task})
        assert not subject.observers

    looptime.run(scenario())
    assert wakes == [0.0, 1.0]
    assert threads.issuperset(threading.enumerate())


def test_a_flag_stays_raised_until_the_consumer_waits() -> None:
    subject: Subject[int] = Subject()

    async def scenario() -> None:
        with Signal(subject) as signal:
            assert signal.is_raised
            await signal.wait()
            assert not signal.is_raised
            subject.on_next(1)
            assert signal.is_raised

    looptime.run(scenario())


def test_a_wait_may_end_without_an_emission() -> None:
    subject: Subject[int] = Subject()
    wakes: list[tuple[float, bool]] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        with Signal(subject) as signal:
            await signal.wait()
            loop.call_later(4.0, subject.on_next, 1)
            for _ in range(3):
                await signal.wait(at_most=3.0)
                wakes.append((loop.time(), signal.since is not None))

    looptime.run(scenario())
    assert wakes == [(3.0, False), (4.0, True), (7.0, False)]


def test_an_error_of_a_source_is_raised_in_the_job() -> None:
    subject: Subject[int] = Subject()

    async def scenario() -> None:
        with Signal(subject) as signal:
            await signal.wait()
            subject.on_error(ValueError("the table is gone"))
            await signal.wait()

    with pytest.raises(ValueError, match="the table is gone"):
        looptime.run(scenario())
    assert not subject.observers


def test_settling_takes_turns_and_no_time() -> None:
    subject: Subject[int] = Subject()
    seen: list[tuple[float, int]] = []
    count = 0

    async def produce() -> None:
        nonlocal count
        for _ in range(4):
            count += 1
            subject.on_next(count)
            await asyncio.sleep(0)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        with Signal(subject) as signal:
            await signal.wait()
            task = asyncio.create_task(produce())
            await signal.wait(settle_turns=6)
            seen.append((loop.time(), count))
            await task

    looptime.run(scenario())
    assert seen == [(0.0, 4)]


def test_a_job_can_wake_itself() -> None:
    async def scenario() -> None:
        with Signal() as signal:
            await signal.wait()
            asyncio.get_running_loop().call_later(5, signal.raise_flag)
            await signal.wait()
            assert asyncio.get_running_loop().time() == 5

    looptime.run(scenario())
