"""The leader's Events on Services: an address is advertised by no node, or begins to be advertised."""

from __future__ import annotations

import contextlib
import random
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import structlog
from msgspec.structs import replace
from prometheus_client.core import CounterMetricFamily, Metric

from cells.apply.reconcile import Runners
from cells.hive import Group, Health
from cells.hive.jobs import Jobs
from cells.operator.election import Leadership
from cells.operator.leader_check import MANAGER
from cells.options import OperatorOptions
from cells.report.event_writes import EventWrites
from cells.sources.api_server import UNREAD_SECONDS, Kubernetes
from reconcilers.dialect import Dialect, ServiceAdvertisement, ServiceStatuses, extended
from reconcilers.model import ObjectRef, ref_to
from reconcilers.report.events import EventCorrelator
from reconcilers.report.service_events import (
    SelectedService,
    ServiceChange,
    ServiceEvents,
    occurrences,
)
from reconcilers.target.write_spread import WriteSpread
from resources.core import EndpointSlice, Service
from resources.core.kinds import ENDPOINT_SLICE, SERVICE
from resources.enumeration import first_of
from resources.errors import ResourceError
from resources.kind import Kind
from resources.kubernetes import StatusError, Writer
from resources.meta import ObjectKey, Resource
from resources.tables import Tables
from statedb import Database

POLL_INTERVAL_SECONDS = 60.0
"""Between two passes."""
WRITES: Final = "service-event-writes"
"""The job that writes Events, and its part of health."""
CONTROLLER: Final = "waggle.dev/operator"
FORBIDDEN, NOT_SERVED = 403, 404

R = TypeVar("R", bound=Resource)

log = structlog.get_logger("waggle.operator")


class _Compared(NamedTuple):
    """The Services of one dialect, in one pass."""

    dialect: Dialect
    advertisement: ServiceAdvertisement
    services: dict[ObjectRef, SelectedService]
    pending: dict[ObjectKey, tuple[Service, list[EndpointSlice]]]
    """Services of which EndpointSlices have to be read."""

    def add(self, service: Service) -> None:
        """Add a Service, if it is to be advertised."""
        if not (addresses := self.advertisement.selected(service)):
            return
        ref = ref_to(SERVICE, service)
        self.services[ref] = SelectedService(ref, service.metadata.uid, addresses)
        if self.advertisement.follows_endpoints(service):
            self.pending[service.key] = (service, [])
        else:
            self.compare(service, ())

    def compare(self, service: Service, slices: Sequence[EndpointSlice]) -> None:
        """Determine which addresses of a Service no node advertises."""
        advertised = self.advertisement.advertised(service, slices)
        ref = ref_to(SERVICE, service)
        known = self.services[ref]
        missing = tuple(text for text in known.addresses if text not in advertised)
        self.services[ref] = replace(known, missing=missing)


class ServiceEventsCheck:
    """A `cells.operator.leader_check.LeaderCheck`."""

    name = "service-events"

    def __init__(
        self,
        database: Database,
        tables: Tables,
        dialects: Group[Dialect],
        kubernetes: Kubernetes,
        options: OperatorOptions,
        leadership: Leadership,
        health: Health,
        jobs: Jobs,
        runners: Runners,
    ) -> None:
        self._leadership = leadership
        self._runners = runners
        self._database = database
        self._tables = tables
        self._kubernetes = kubernetes
        # Without statuses what is advertised is not known.
        self._statuses = extended(dialects, ServiceStatuses) if options.status_report else []
        self._states = {dialect.name: ServiceEvents() for dialect, _ in self._statuses}
        self._health = health.scope(self.name)
        spread = WriteSpread(random.SystemRandom().random, lambda: 1)
        self._events = EventWrites(
            database,
            EventCorrelator(socket.gethostname(), spread, CONTROLLER),
            kubernetes,
            MANAGER,
            health.scope(WRITES),
            rejected=lambda **fields: log.warning(
                "Event not written", event_name="operator.event_rejected", **fields
            ),
            dropped=lambda **fields: log.warning(
                "Events are dropped", event_name="operator.events_dropped", **fields
            ),
        )
        if self.needed:
            jobs.add(WRITES, self._write)

    @property
    def needed(self) -> bool:
        """True if an enabled dialect has statuses of Services, and they are written."""
        return bool(self._statuses)

    async def run(self, writer: Writer) -> float:
        """Compare Services with the statuses once, and record Events. Raises `KubernetesError`.

        A dialect of which something cannot be read is omitted: its Services would seem to be
        selected no more, and then to begin to be advertised.
        """
        unread = self._kubernetes.unread
        if unread.waits_for:
            return UNREAD_SECONDS
        troubles: list[str] = []
        compared: list[_Compared] = []
        for dialect, statuses in self._statuses:
            tables = {self._tables.of(kind).name for kind in dialect.cluster_kinds}
            if blocked := tables & unread.kinds.keys():
                names = ", ".join(sorted(unread.kinds[table] for table in blocked))
                troubles.append(f"no Events for {dialect.title}: {names} cannot be read")
                continue
            advertisement = statuses.begin(dialect, self._database.snapshot())
            if await self._read(writer, dialect, statuses, advertisement, troubles):
                compared.append(_Compared(dialect, advertisement, {}, {}))
        try:
            await _read_services(writer, compared)
            pending = [of_dialect for of_dialect in compared if of_dialect.pending]
            if pending and (trouble := await _read_endpoints(writer, pending)):
                troubles.append(trouble)
                compared = [of_dialect for of_dialect in compared if not of_dialect.pending]
        except StatusError as error:
            if error.status != FORBIDDEN:
                raise
            self._health.degraded(f"Services cannot be read: {error}")
            return POLL_INTERVAL_SECONDS
        self._record(compared)
        if troubles:
            self._health.degraded(first_of(troubles[0], len(troubles)))
        else:
            self._health.ok("Services are compared with the statuses")
        return POLL_INTERVAL_SECONDS

    async def _write(self) -> None:
        await self._leadership.gained.wait()
        await self._events.run(self._runners.run)

    async def _read(
        self,
        writer: Writer,
        dialect: Dialect,
        statuses: ServiceStatuses,
        advertisement: ServiceAdvertisement,
        troubles: list[str],
    ) -> bool:
        """Read what a dialect's statuses are made of; returns False if it cannot be read.

        What is wrong is appended to ``troubles``, a sentence each; older definitions may not have the
        kind, which is no trouble.
        """
        namespace = statuses.namespace(dialect)
        for kind in statuses.kinds:
            try:
                async for page in writer.pages(kind.path(kind.versions[0], namespace), ()):
                    for value in page:
                        try:
                            advertisement.read(kind, value)
                        except (msgspec.ValidationError, ResourceError) as error:
                            name = value.get("metadata", {}).get("name", "")
                            troubles.append(f"{ObjectRef(kind.name, namespace, name)}: {error}")
            except StatusError as error:
                if error.status == FORBIDDEN:
                    troubles.append(f"no Events for {dialect.title}: {error}")
                elif error.status != NOT_SERVED:
                    raise
                return False
        return True

    def _record(self, compared: Sequence[_Compared]) -> None:
        """Record what has changed: one Event for a Service and transition, also of several dialects.

        An address that nodes advertise by the objects of one dialect is not missing by another's.
        """
        now = time.monotonic()
        advertised: dict[ObjectRef, set[str]] = {}
        for of_dialect in compared:
            for ref, service in of_dialect.services.items():
                present = set(service.addresses) - set(service.missing)
                advertised.setdefault(ref, set()).update(present)
        changes: list[ServiceChange] = []
        for of_dialect in compared:
            services = {
                ref: replace(
                    service,
                    missing=tuple(text for text in service.missing if text not in advertised[ref]),
                )
                for ref, service in of_dialect.services.items()
            }
            changes += self._states[of_dialect.dialect.name].changes(services, now)
        for occurrence in occurrences(changes):
            self._events.record(occurrence)

    def collect(self) -> Iterator[Metric]:
        """Yield the number of Events that are lost."""
        dropped = CounterMetricFamily(
            "waggle_operator_events_dropped", "Events on Services that were not written at all."
        )
        dropped.add_metric([], self._events.events.dropped)
        yield dropped


async def _read_services(writer: Writer, compared: Sequence[_Compared]) -> None:
    """Compare all Services, a page at a time, between which the operator answers others.

    Raises `KubernetesError`.
    """
    async for page in writer.pages(SERVICE.path("v1"), ()):
        for service in _decoded(SERVICE, page):
            for of_dialect in compared:
                of_dialect.add(service)


async def _read_endpoints(writer: Writer, compared: Sequence[_Compared]) -> str | None:
    """Compare the Services that depend on EndpointSlices; returns a sentence if these cannot be read.

    Raises `KubernetesError`.
    """
    try:
        async for page in writer.pages(ENDPOINT_SLICE.path("v1"), ()):
            for piece in _decoded(ENDPOINT_SLICE, page):
                for of_dialect in compared:
                    if piece.service_key in of_dialect.pending:
                        of_dialect.pending[piece.service_key][1].append(piece)
    except StatusError as error:
        if error.status != FORBIDDEN:
            raise
        titles = ", ".join(of_dialect.dialect.title for of_dialect in compared)
        return f"no Events for {titles}: {error}"
    for of_dialect in compared:
        for service, slices in of_dialect.pending.values():
            of_dialect.compare(service, slices)
        of_dialect.pending.clear()
    return None


def _decoded(kind: Kind[R], page: Iterable[dict[str, Any]]) -> Iterator[R]:
    """Yield the valid objects of a page; agents report the others."""
    for value in page:
        with contextlib.suppress(ResourceError):
            yield kind.decode(value)
