"""Memory is released after a large session, once the process is idle."""

from __future__ import annotations

import asyncio

import pytest

from speaker.server import free_memory, postpone_collections, settle_memory
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


class Collector:
    """The module gc, as far as a start uses it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._enabled = True

    def isenabled(self) -> bool:
        return self._enabled

    def collect(self, generation: int) -> None:
        self.calls.append(f"collect {generation}")

    def freeze(self) -> None:
        self.calls.append("freeze")

    def disable(self) -> None:
        self._enabled = False

    def enable(self) -> None:
        self._enabled = True


def test_rows_that_a_start_has_read_are_never_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them are young: a collection of the young ones would be one of 100,000 rows."""
    collector = Collector()
    monkeypatch.setattr(free_memory, "gc", collector)
    postpone_collections()
    assert not collector.isenabled()
    settle_memory()
    assert collector.calls == ["freeze"]
    assert collector.isenabled()
    settle_memory()
    assert collector.calls == ["freeze", "collect 0", "freeze"]
