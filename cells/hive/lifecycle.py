"""Start and stop hooks: start in the order of construction, stop in reverse.

Constructors are synchronous and cheap and append their hooks here; all I/O happens in hooks. A
failed start stops exactly what had started. Stopping continues past a hook that fails or hangs, so
that the hooks before it run: no failure may keep the sessions from being closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import structlog

Hook = Callable[[], Awaitable[None]]

START_TIMEOUT = 60.0
STOP_TIMEOUT = 5.0
SLOW_SECONDS = 1.0
"""A hook that takes longer is logged."""

log = structlog.get_logger("waggle.hive")


class HookTimeoutError(Exception):
    """A start hook did not finish within its limit."""

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(f"{name} did not start within {seconds:g} s")


class Entry(msgspec.Struct, frozen=True):
    """One pair of hooks; limits are in seconds."""

    name: str
    start: Hook | None
    stop: Hook | None
    start_timeout: float
    stop_timeout: float


class Lifecycle:
    """The ordered hooks of one agent."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._started: list[Entry] = []

    @property
    def names(self) -> tuple[str, ...]:
        """Hook names in start order."""
        return tuple(entry.name for entry in self._entries)

    def append(
        self,
        name: str,
        *,
        start: Hook | None = None,
        stop: Hook | None = None,
        start_timeout: float = START_TIMEOUT,
        stop_timeout: float = STOP_TIMEOUT,
    ) -> None:
        """Register hooks; ``stop`` runs only if ``start`` (or its absence) has succeeded."""
        self._entries.append(Entry(name, start, stop, start_timeout, stop_timeout))

    async def start(self) -> None:
        """Run the start hooks in order; on a failure or cancellation stop what had started."""
        try:
            for entry in self._entries:
                if entry.start is not None:
                    await self._start_one(entry, entry.start)
                self._started.append(entry)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Run the stop hooks of what has started, last first. Never raises for a hook."""
        while self._started:
            entry = self._started.pop()
            if entry.stop is not None:
                await self._stop_one(entry, entry.stop)

    async def _start_one(self, entry: Entry, hook: Hook) -> None:
        began = asyncio.get_running_loop().time()
        timeout = asyncio.timeout(entry.start_timeout)
        try:
            async with timeout:
                await hook()
        except TimeoutError as error:
            if timeout.expired():
                raise HookTimeoutError(entry.name, entry.start_timeout) from error
            raise
        self._note_slow("start", entry.name, began)

    async def _stop_one(self, entry: Entry, hook: Hook) -> None:
        began = asyncio.get_running_loop().time()
        timeout = asyncio.timeout(entry.stop_timeout)
        try:
            async with timeout:
                await hook()
        except Exception as error:  # noqa: BLE001 - a fence: the hooks before this one must run
            reason = "timed out" if timeout.expired() else str(error) or type(error).__name__
            log.warning(
                "stop hook failed", event_name="hive.stop_failed", hook=entry.name, reason=reason
            )
        self._note_slow("stop", entry.name, began)

    def _note_slow(self, phase: str, name: str, began: float) -> None:
        took = asyncio.get_running_loop().time() - began
        if took > SLOW_SECONDS:
            log.warning("slow hook", hook=name, phase=phase, seconds=round(took, 3))
