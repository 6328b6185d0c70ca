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
