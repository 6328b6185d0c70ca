"""Reserve, start and stop hooks: in the order of construction, stop in reverse.

Constructors are synchronous and cheap and append their hooks here; all I/O happens in hooks. What one
process alone can have (a socket, a port, a lock, a file) is reserved before anything starts: a program
that is refused has had no effect on the running program. A failed start stops exactly what had been
reserved or started. Stopping continues past a hook that fails or hangs, so that the hooks before it
run: no failure may keep the sessions from being closed.
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
    """The hooks of one part; limits are in seconds."""

    name: str
    reserve: Hook | None
    start: Hook | None
    stop: Hook | None
    stop_timeout: float
    first: bool


class Lifecycle:
    """The ordered hooks of one agent."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._to_stop: set[int] = set()
        """The places of the entries that have been reserved or started."""

    @property
    def names(self) -> tuple[str, ...]:
        """Hook names in start order."""
        return tuple(entry.name for entry in self._entries)

    def append(
        self,
        name: str,
        *,
        reserve: Hook | None = None,
        start: Hook | None = None,
        stop: Hook | None = None,
        stop_timeout: float = STOP_TIMEOUT,
        first: bool = False,
    ) -> None:
        """Register hooks.

        Every ``reserve`` runs before the first ``start``, and raises what refuses the start of the
        program. ``stop`` runs if ``reserve`` or ``start`` (or the absence of both) has succeeded.
        With ``first``, ``reserve`` runs before that of all other parts, and before their threads.
        """
        self._entries.append(Entry(name, reserve, start, stop, stop_timeout, first))

    async def start(self) -> None:
        """Run the hooks in order; on a failure or cancellation stop what had been done."""
        try:
            for place, entry in sorted(
                enumerate(self._entries), key=lambda each: not each[1].first
            ):
                if entry.reserve is not None:
                    await self._start_one(entry, "reserve", entry.reserve)
                    self._to_stop.add(place)
            for place, entry in enumerate(self._entries):
                if entry.start is not None:
                    await self._start_one(entry, "start", entry.start)
                self._to_stop.add(place)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Run the stop hooks of what was reserved or started, last first. Never raises for a hook."""
        while self._to_stop:
            place = max(self._to_stop)
            self._to_stop.remove(place)
            entry = self._entries[place]
            if entry.stop is not None:
                await self._stop_one(entry, entry.stop)

    async def _start_one(self, entry: Entry, phase: str, hook: Hook) -> None:
        began = asyncio.get_running_loop().time()
        timeout = asyncio.timeout(START_TIMEOUT)
        try:
            async with timeout:
                await hook()
        except TimeoutError as error:
            if timeout.expired():
                raise HookTimeoutError(entry.name, START_TIMEOUT) from error
            raise
        self._note_slow(phase, entry.name, began)

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
            log.warning(
                "slow hook",
                event_name="hive.slow_hook",
                hook=name,
                phase=phase,
                seconds=round(took, 3),
            )
