"""Rounds that are done in slices."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

import pytest

from cells.hive.rounds import in_slices
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
