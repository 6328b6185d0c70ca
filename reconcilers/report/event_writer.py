"""Writes Events to the API server, one after the other.

A rejected Event is dropped; while the API server is unavailable Events wait and are retried with
backoff. `reconcilers.report.events` limits their number and rate.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, final

import msgspec

from reconcilers.model import ObjectRef
from reconcilers.report.events import EventCorrelator, EventWrite
from resources.kubernetes import Backoff, KubernetesError, StatusError

PATH: Final = "/apis/events.k8s.io/v1/namespaces/{}/events"
UNAVAILABLE: Final = (429, 500, 502, 503, 504)
"""HTTP statuses that concern the API server, not the Event: the write is retried."""
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 1.0, 60.0
"""Bounds of the pause while the API server is unavailable."""


class EventClient(Protocol):
    """Requests to an API server; `resources.kubernetes.Writer` implements them."""

    async def create(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object in a collection."""

    async def merge(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Send a JSON merge patch (RFC 7386)."""


class EventOutcome(msgspec.Struct, frozen=True):
    """The result of one request."""

    object: ObjectRef
    """The object that the Event regards."""
    error: str = ""
    """Empty if it was written."""
    rejected: bool = False
    """True if the API server rejected the Event: it is dropped."""
    repeated: bool = False
    """True if the last rejection had the same error."""


@final
class EventWriter:
    """Writes the due Events of an `EventCorrelator`."""

    def __init__(
        self,
        events: EventCorrelator,
        client: EventClient,
        rng: random.Random,
        *,
        report: Callable[[EventOutcome], None],
        now: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        """``report`` receives each outcome; ``now`` is monotonic, ``wall`` Unix time, in seconds."""
        self._events = events
        self._client = client
        self._backoff = Backoff(rng, first=FIRST_RETRY_SECONDS, longest=LONGEST_RETRY_SECONDS)
        self._report = report
        self._now = now
        self._wall = wall
        self._retry_at = 0.0
        self._unavailable = ""
        """The error of the last request, if the API server was unavailable."""
        self._rejection = ""
        """The error of the last Event, if it was rejected."""
        self._writes = 0

    @property
    def failure(self) -> str:
        """The present error, for health; empty if there is none."""
        if self._unavailable:
            return f"{self._unavailable}; Events are kept and written later"
        return f"{self._rejection}{self._dropped}" if self._rejection else ""

    @property
    def summary(self) -> str:
        """The number of Events written and dropped, for health."""
        return f"{self._writes} written{self._dropped}"

    @property
    def _dropped(self) -> str:
        return f", {self._events.dropped} dropped" if self._events.dropped else ""

    async def step(self) -> float | None:
        """Write what is due; the seconds until the next step, None until another occurrence."""
        while True:
            now = self._now()
            if now < self._retry_at:
                return self._retry_at - now
            write = self._events.next_write(now, self._wall())
            if write is None:
                self._unavailable = ""
                return self._events.pause(now)
            try:
                await self._send(write)
            except KubernetesError as error:
                return self._retry_later(write, error)
            self._backoff.reset()
            self._unavailable = ""

    async def _send(self, write: EventWrite) -> None:
        path = PATH.format(write.namespace)
        try:
            if write.new:
                await self._client.create(path, write.content)
            else:
                await self._client.merge(f"{path}/{write.name}", write.content)
        except StatusError as error:
            if error.status in UNAVAILABLE:
                raise
            if write.new and error.status == 409:
                # Another agent, or this one before a restart, has created the same Event.
                self._events.written(write, self._now())
            elif not write.new and error.status == 404:
                self._events.expired(write, self._now())
            else:
                self._events.rejected(write, self._now())
                self._reject(write, error)
            return
        self._events.written(write, self._now())
        self._rejection = ""
        self._writes += 1
        self._report(EventOutcome(write.occurrence.regarding.ref))

    def _reject(self, write: EventWrite, error: StatusError) -> None:
        verb = "create" if write.new else "patch"
        text = f"may not {verb} events: {error.message}" if error.status == 403 else str(error)
        repeated = text == self._rejection
        self._rejection = text
        ref = write.occurrence.regarding.ref
        self._report(EventOutcome(ref, text, rejected=True, repeated=repeated))

    def _retry_later(self, write: EventWrite, error: KubernetesError) -> float:
        retry_after = error.retry_after if isinstance(error, StatusError) else 0.0
        pause = self._backoff.next(retry_after)
        self._retry_at = self._now() + pause
        self._unavailable = str(error)
        self._report(EventOutcome(write.occurrence.regarding.ref, str(error)))
        return pause
