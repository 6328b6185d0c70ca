"""Rounds that are done in slices, and the time between rounds."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from itertools import pairwise

import pytest

from cells.hive.rounds import in_slices, run_rounds
from cells.hive.signal import Signal
from tests.support import looptime


def counted(done: list[str]) -> Generator[None, None, int]:
    """Work in three slices, which notes its end."""
    try:
        for number in range(3):
            done.append(f"slice {number}")
            yield
    finally:
        done.append("closed")
    return 3


def test_each_slice_is_a_turn_of_the_loop() -> None:
    done: list[str] = []

    async def scenario() -> int:
        loop = asyncio.get_running_loop()

        def turn() -> None:
            done.append("turn")
            loop.call_soon(turn)

        loop.call_soon(turn)
        return await in_slices(counted(done))

    assert looptime.run(scenario()) == 3
    assert done[:6] == ["slice 0", "turn", "slice 1", "turn", "slice 2", "turn"]
    assert "closed" in done


def test_work_that_is_cancelled_is_closed() -> None:
    done: list[str] = []

    async def scenario() -> None:
        task = asyncio.create_task(in_slices(counted(done)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    looptime.run(scenario())
    assert done == ["slice 0", "closed"]


@pytest.mark.parametrize(("took", "period"), [(0.0, 0.1), (0.005, 0.105), (0.1, 1.0), (5.0, 7.0)])
def test_rounds_that_take_long_are_rarer(took: float, period: float) -> None:
    begins: list[float] = []

    async def scenario() -> None:
        signal = Signal()

        async def run(_: float | None) -> None:
            begins.append(asyncio.get_running_loop().time())
            await asyncio.sleep(took)
            signal.raise_flag()

        task = asyncio.create_task(run_rounds(signal, run, interval=0.1))
        await asyncio.sleep(30)
        task.cancel()

    looptime.run(scenario())
    pauses = {round(later - before, 6) for before, later in pairwise(begins)}
    assert pauses == {period}


def test_without_an_interval_a_change_is_a_round_at_once() -> None:
    begins: list[float] = []

    async def scenario() -> None:
        signal = Signal()
        now = asyncio.get_running_loop().time
        start = now()

        async def run(_: float | None) -> None:
            begins.append(now() - start)

        task = asyncio.create_task(run_rounds(signal, run))
        for _ in range(3):
            await asyncio.sleep(0.01)
            signal.raise_flag()
        await asyncio.sleep(1000)
        task.cancel()

    looptime.run(scenario())
    assert [round(at, 3) for at in begins] == [0, 0.01, 0.02, 0.03]


@pytest.mark.parametrize(
    ("retry", "poll", "pause"),
    [
        pytest.param(None, 5.0, 5.0, id="poll"),
        pytest.param(3.0, None, 3.0, id="retry"),
        pytest.param(3.0, 5.0, 3.0, id="a retry before the poll"),
        pytest.param(7.0, 5.0, 5.0, id="a poll before the retry"),
        pytest.param(None, None, None, id="neither"),
    ],
)
def test_the_next_round_is_the_earlier_of_the_retry_and_the_poll(
    retry: float | None, poll: float | None, pause: float | None
) -> None:
    begins: list[float] = []

    async def scenario() -> None:
        async def run(_: float | None) -> float | None:
            begins.append(asyncio.get_running_loop().time())
            return retry

        task = asyncio.create_task(run_rounds(Signal(), run, poll=poll))
        await asyncio.sleep(29)
        task.cancel()

    looptime.run(scenario())
    if pause is None:
        assert len(begins) == 1
    else:
        assert {round(later - before, 6) for before, later in pairwise(begins)} == {pause}
