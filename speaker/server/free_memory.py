"""The memory of a process with a speaker: collections at times that delay no session.

Routes are freed by reference counting, as the core makes no reference cycles. What is left after a
large session or a large message are cycles of other code, and free memory that the allocator keeps:
both are dealt with once the process is idle.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import time
from collections.abc import Callable
from typing import Final

YOUNG_OBJECTS: Final = 10_000
"""New objects after which the young ones are collected: some milliseconds. Fewer cost throughput."""
YOUNG_COLLECTIONS: Final = 2
"""Collections of the young objects before one of the middle generation: 20 ms mostly."""
FULL_COLLECTIONS: Final = 1_000_000
"""Full collections do not happen by themselves: with a full table one takes a second."""
IDLE_SECONDS: Final = 2.0
"""For how long the process has to be idle."""
IDLE_SHARE: Final = 0.1
"""The share of a CPU that an idle process uses at most."""
LARGE_SESSION_ROUTES: Final = 5_000
"""Received routes of a session after whose end memory is released."""
ATTEMPTS: Final = 150
"""A process that is busy for five minutes is left as it is."""


def bound_collections() -> None:
    """Bound the time of collections, and exempt the imported modules from them.

    For the beginning of the start: there are no rows yet, and no sessions. A collection of the modules
    would take 40 ms of every start, for a thousand small objects.
    """
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_COLLECTIONS, FULL_COLLECTIONS)


def postpone_collections() -> None:
    """Collect nothing until `settle_memory`: for a start that reads many rows, which remain."""
    gc.disable()


def settle_memory() -> None:
    """Exempt the present objects from collections, and begin to collect.

    For the end of the start: modules and rows mostly remain. A full collection of 100,000 rows would
    stop the sessions for a second; after `postpone_collections` all rows are young.
    """
    if gc.isenabled():
        gc.collect(0)
    gc.freeze()
    gc.enable()


def abandon_memory() -> None:
    """Exempt all objects from the collection that the interpreter makes before it exits.

    For the end of the program: of 100,000 rows it takes half a second.
    """
    gc.freeze()


def release_memory() -> None:
    """Collect reference cycles, and return free memory to the system (glibc's malloc_trim)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class MemoryRelease:
    """Releases memory once the process is idle after something large has ended."""

    def __init__(
        self,
        *,
        cpu: Callable[[], float] = time.process_time,
        release: Callable[[], None] = release_memory,
    ) -> None:
        """``cpu`` returns the CPU time of the process, in seconds."""
        self._cpu = cpu
        self._release = release
        self._task: asyncio.Task[None] | None = None

    def session_ended(self, routes: int) -> None:
        """Release memory later if an ended session had many routes."""
        if routes >= LARGE_SESSION_ROUTES:
            self.schedule()

    def schedule(self) -> None:
        """Release memory at the next idle time, once for all calls until then."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    def cancel(self) -> None:
        """Release nothing any more: the process ends."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        for _ in range(ATTEMPTS):
            before = self._cpu()
            await asyncio.sleep(IDLE_SECONDS)
            if self._cpu() - before <= IDLE_SHARE * IDLE_SECONDS:
                self._release()
                return
