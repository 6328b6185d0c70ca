"""Reconciles Events with the API server: created once, then patched with the count of their series.

A rejected Event is given up; while the API server is unavailable Events wait.
`reconcilers.report.events` limits their number and rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol, final

from reactivex import Observable

from reconcilers.api_server import reconcile_error
from reconcilers.report.events import WRITE_INTERVAL_SECONDS, EventCorrelator, EventWrite
from reconcilers.sliced_work import Slices, at_once
from reconcilers.target import Description, NotNow, Pace, ReconcileError
from reconcilers.target.reconciler import ObjectKey, Parts
from reconcilers.target.single_value import SingleValue
from resources.kubernetes import KubernetesError, StatusError
from statedb import Snapshot

NAME: Final = "event"
PATH: Final = "/apis/events.k8s.io/v1/namespaces/{}/events"
UNAVAILABLE: Final = (429, 500, 502, 503, 504)
"""HTTP statuses that concern the API server, not the Event: the write is retried."""
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 1.0, 60.0
"""Bounds of the pause while the API server is unavailable."""


class EventClient(Protocol):
    """Requests to an API server; `resources.kubernetes.Writer` implements them."""

    async def create(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Create an Event object in a collection."""

    async def merge(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Patch an Event object by a JSON merge patch (RFC 7386)."""


@final
class EventObjects(SingleValue):
    """Objects are ``("Event", namespace, name)``, values the counts of their series."""

    def __init__(
        self,
        events: EventCorrelator,
        client: EventClient,
        recorded: Observable[Any],
        *,
        now: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        """``recorded`` emits after a change of ``events``; ``now`` is monotonic, ``wall`` Unix time."""
        self.description = Description(
            name=NAME,
            order=20,
            tables=(),
            target="API server",
            summary="Events on objects and this node",
            pace=Pace(
                first_retry=FIRST_RETRY_SECONDS,
                last_retry=LONGEST_RETRY_SECONDS,
                jitter=(0.5, 1.0),
            ),
            ordered=True,
            stream=recorded,
        )
        self._events = events
        self._client = client
        self._now = now
        self._wall = wall

    def changes(self, snapshot: Snapshot) -> Slices[Mapping[ObjectKey, Parts]]:
        """Return the Events that may have to be written since the last call."""
        del snapshot
        return at_once(dict.fromkeys(self._events.take_changed()))

    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        """Return all Event objects that there shall be."""
        del snapshot
        return self._events.all_events()

    def actual_objects(self) -> Iterable[ObjectKey]:
        """Return none: the API server deletes Event objects by itself."""
        return ()

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        """True if an Event object is kept: neither dropped nor over."""
        del snapshot
        return self._events.is_kept(key, self._wall())

    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> int:
        """Return the count that an Event object is to have."""
        del snapshot
        return self._events.count(key)

    def actual_value(self, key: ObjectKey) -> int | None:
        """Return the count of the stored Event object. Raises `NotNow` until its time."""
        events, now = self._events, self._now()
        if not events.is_kept(key, self._wall()):
            return None
        written = events.written_count(key)
        if written < events.count(key):
            if (pause := events.pause(key, now)) > 0:
                raise NotNow(pause)
            of_tenant = events.is_of_tenant(key)
            if (pause := events.token_pause(now, of_tenant=of_tenant)) > 0:
                raise NotNow(pause, all_objects=not of_tenant)
        return written or None

    async def set_value(self, key: ObjectKey, value: int) -> None:
        """Create the Event object, or patch its count."""
        del value
        write = self._events.write(key)
        path = PATH.format(write.namespace)
        try:
            if write.new:
                await self._client.create(path, write.content)
            else:
                await self._client.merge(f"{path}/{write.name}", write.content)
        except KubernetesError as error:
            self._handle(write, error)
        self._events.written(write, self._now())

    def _handle(self, write: EventWrite, error: KubernetesError) -> None:
        """Raise what follows from an error of a request."""
        if not isinstance(error, StatusError) or error.status in UNAVAILABLE:
            raise reconcile_error(error, all_objects=True) from None
        if write.new and error.status == 409:
            # Another agent, or this one before a restart, has created the same Event.
            self._events.written(write, self._now())
            raise NotNow(0.0)
        if not write.new and error.status == 404:
            self._events.expired(write, self._now())
            raise NotNow(WRITE_INTERVAL_SECONDS)
        self._events.rejected(write, self._now())
        verb = "create" if write.new else "patch"
        reason = f"may not {verb} events: {error.message}" if error.status == 403 else str(error)
        raise ReconcileError(reason, final=True)

    async def delete(self, key: ObjectKey) -> None:
        """Leave an Event object: the API server deletes it by itself."""
        del key
