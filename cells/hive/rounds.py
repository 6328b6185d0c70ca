"""The body of every job that follows changes: wait, settle, run one round, retry when requested.

A round is level-triggered: it reads the current state, so a burst of changes costs one round, and a
lost wake-up costs nothing but time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Generator
from typing import Final, TypeVar

from cells.hive.signal import Signal
from reconcilers.sliced_work import Turns

RESTS: Final = 9
"""Times as long as a round takes nothing is done after it, where rounds have an interval."""
MOST_REST_SECONDS: Final = 2.0
"""At most: a round that waits for a slow server is no reason for more."""
T = TypeVar("T")
Round = Callable[[float | None], Awaitable[float | None]]
"""Runs one round. Takes the time of the first change that it is for (monotonic seconds; None for a
round without a change), returns the seconds until the next round if nothing changes before, or None."""


async def in_slices(slices: Generator[None, None, T]) -> T:
    """Do work in slices, each in a turn of the loop; return the result."""
    with contextlib.closing(slices):
        return await Turns(slices)


async def run_rounds(
    signal: Signal,
    run: Round,
    *,
    settle_turns: int = 0,
    interval: float = 0.0,
    poll: float | None = None,
) -> None:
    """Run rounds until cancelled: the first at once, the next after a change or a retry time.

    ``interval`` are the least seconds between two rounds, ``poll`` the most, ``settle_turns`` the turns
    of the loop in which further changes join a round. With an interval, rounds that take long take a
    tenth of the time: ten thousand sessions are not read ten times a second.
    """
    now = asyncio.get_running_loop().time
    pause = poll
    with signal:
        while True:
            await signal.wait(settle_turns=settle_turns, at_most=pause)
            began = now()
            retry = await run(signal.since)
            pause = poll if retry is None or (poll is not None and poll < retry) else retry
            if interval:
                rest = min(RESTS * (now() - began), MOST_REST_SECONDS)
                await asyncio.sleep(max(interval, rest))
