"""What a start of the agent does about memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from cells.hive import Readiness
from speaker.server import MemoryRelease
from tests.support import looptime
from waggle_agent import program


@pytest.mark.parametrize(
    ("first_table", "settled"),
    [
        (2.0, [2.0]),
        (45.0, [program.POSTPONED_COLLECTIONS_SECONDS, 45.0]),
        (None, [program.POSTPONED_COLLECTIONS_SECONDS]),
    ],
    ids=["a session", "a late session", "no session"],
)
def test_memory_is_collected_from_the_first_full_session_on_and_after_half_a_minute_at_most(
    first_table: float | None, settled: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[float] = []
    released: list[int] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(program, "settle_memory", lambda: times.append(loop.time()))
        monkeypatch.setattr(program, "postpone_collections", lambda: None)
        monkeypatch.setattr(MemoryRelease, "schedule", lambda _self: released.append(1))
        readiness = Readiness()
        readiness.gate("peers", "the initial table of every peer")
        began = loop.time()
        program._postpone_collections(readiness)
        if first_table is not None:
            serving: Callable[[], None] = readiness.serving
            loop.call_later(first_table, serving)
        await asyncio.sleep(100)
        times[:] = [round(time - began, 3) for time in times]

    looptime.run(main())
    assert times == settled
    assert len(released) == (first_table is not None)
