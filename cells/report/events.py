"""Writes Events one after the other; a refused Event is dropped, an unreachable API server is retried.

`reconcilers.report.events` limits their number and rate.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, final

import structlog

from cells.hive import Health
from cells.report.statuses import TIMING
from reconcilers.report.events import EventLog, EventWrite, Occurrence
from resources.kubernetes import Backoff, KubernetesError, Refused

PATH: Final = "/apis/events.k8s.io/v1/namespaces/{}/events"
LASTING: Final = (429, 500, 502, 503, 504)
"""Statuses that are not about this Event: it is retried."""

log = structlog.get_logger("waggle.report")


class Objects(Protocol):
    """Requests to an API server; `resources.kubernetes.Writer` implements them."""

    async def create(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object in a list."""

    async def merge(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Set fields of an object."""


@final
class EventWriting:
    """Writes the due Events of an `EventLog`."""

    def __init__(
        self,
        events: EventLog,
        writer: Objects,
        rng: random.Random,
        health: Health,
        *,
        failed: Callable[[], None],
        written: Callable[[], None],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._events = events
        self._writer = writer
        self._backoff = Backoff(TIMING, rng)
        self._health = health
        self._failed = failed
        self._written = written
        self._wall = wall
        self._ready_at = 0.0
        self._trouble = ""
        self.writes = 0

    async def step(self) -> float | None:
        """Write what is due; in how many seconds to come again, None is with the next occurrence."""
        while True:
            now = asyncio.get_running_loop().time()
            if now < self._ready_at:
                return self._ready_at - now
            write = self._events.due(now, self._wall())
            if write is None:
                self._report_health()
                return self._events.next(now)
            try:
                await self._send(write)
            except KubernetesError as error:
                return self._note(error)
            self._backoff.reset()

    async def _send(self, write: EventWrite) -> None:
        path = PATH.format(write.namespace)
        verb = "create" if write.new else "patch"
        now = asyncio.get_running_loop().time
        try:
            if write.new:
                await self._writer.create(path, write.content)
            else:
                await self._writer.merge(f"{path}/{write.name}", write.content)
        except Refused as error:
            if error.status in LASTING:
                raise
            if write.new and error.status == 409:
                # Another agent, or this one before a restart, has created the same Event.
                self._events.done(write, now())
            elif not write.new and error.status == 404:
                self._events.gone(write, now())
            else:
                self._events.refused(write, now())
                self._refused(verb, write.occurrence, error)
            return
        self._events.done(write, now())
        self._trouble = ""
        self.writes += 1
        self._written()

    def _refused(self, verb: str, occurrence: Occurrence, error: Refused) -> None:
        self._failed()
        text = f"may not {verb} events: {error.message}" if error.status == 403 else str(error)
        if text != self._trouble:
            self._trouble = text
            log.warning(
                "event is not written",
                event_name="report.event_refused",
                object=str(occurrence.regarding.ref),
                reason=text,
            )

    def _note(self, error: KubernetesError) -> float:
        requested = error.retry_after if isinstance(error, Refused) else 0.0
        pause = self._backoff.next(requested)
        self._ready_at = asyncio.get_running_loop().time() + pause
        self._failed()
        self._health.degraded(f"{error}; Events are kept and written later")
        return pause

    def _report_health(self) -> None:
        dropped = f", {self._events.dropped} dropped" if self._events.dropped else ""
        if self._trouble:
            self._health.degraded(f"{self._trouble}{dropped}")
        else:
            self._health.ok(f"{self.writes} written{dropped}")
