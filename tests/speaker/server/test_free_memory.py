"""Memory is released after a large session, once the process is idle."""

from __future__ import annotations

import asyncio

from speaker.server.free_memory import IDLE_SECONDS, LARGE_SESSION_ROUTES, MemoryRelease
from tests.support import looptime


class Process:
    """The CPU time of a process that is busy until some time."""

    def __init__(self, busy_until: float = 0.0) -> None:
        self._busy_until = busy_until
        self.released: list[float] = []
        self.memory = MemoryRelease(cpu=self.cpu, release=self.release)

    def cpu(self) -> float:
        """Return the CPU time used so far: all of the time while it is busy."""
        return min(asyncio.get_running_loop().time(), self._busy_until)

    def release(self) -> None:
        """Note the time."""
        self.released.append(asyncio.get_running_loop().time())


def test_memory_is_released_once_after_large_sessions_and_not_after_small_ones() -> None:
    async def main() -> None:
        process = Process()
        process.memory.session_ended(LARGE_SESSION_ROUTES - 1)
        await asyncio.sleep(60)
        assert process.released == []
        for _ in range(100):
            process.memory.session_ended(LARGE_SESSION_ROUTES)
        await asyncio.sleep(60)
        assert len(process.released) == 1
        process.memory.session_ended(LARGE_SESSION_ROUTES)
        await asyncio.sleep(60)
        assert len(process.released) == 2

    looptime.run(main())


def test_a_busy_process_releases_memory_when_it_is_idle_again() -> None:
    async def main() -> None:
        process = Process(busy_until=30.0)
        process.memory.session_ended(LARGE_SESSION_ROUTES)
        await asyncio.sleep(60)
        (when,) = process.released
        assert 30.0 < when <= 30.0 + 2 * IDLE_SECONDS

    looptime.run(main())
