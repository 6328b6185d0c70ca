"""The leader's Events on Services: an address is advertised by no node, or begins to be advertised."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
import structlog
from prometheus_client.core import CounterMetricFamily, Metric

from cells.hive import Group, Health
from cells.options import OperatorOptions
from cells.sources.kubernetes import UNREAD_SECONDS, Kubernetes
from reconcilers.dialect import Dialect, ServiceStatuses, extended
from reconcilers.model import ObjectRef
from reconcilers.report.event_writer import EventOutcome, EventWriter
from reconcilers.report.events import EventCorrelator
from reconcilers.report.service_events import AskingService, ServiceEvents
from reconcilers.target.fleet import WriteSpread
from resources.core import Service
from resources.core.kinds import SERVICE
from resources.enumeration import first_of
from resources.errors import ResourceError
from resources.kubernetes import StatusError, Writer
from resources.tables import Tables
from statedb import Database

POLL_INTERVAL_SECONDS = 60.0
"""Between two passes."""
CONTROLLER: Final = "waggle.dev/operator"
LOAD_BALANCER: Final = "LoadBalancer"
FORBIDDEN, NOT_SERVED = 403, 404

log = structlog.get_logger("waggle.operator")


class _Compared(NamedTuple):
    """The Services of one dialect, in one pass."""

    dialect: Dialect
    statuses: ServiceStatuses
    asked: Callable[[Service], tuple[str, ...]]
    asking: dict[ObjectRef, AskingService]

    def add(self, service: Service) -> None:
        """Add a Service, if it is to be advertised."""
        if addresses := self.asked(service):
            ref = ObjectRef(SERVICE.name, *service.key)
            self.asking[ref] = AskingService(ref, service.metadata.uid, addresses)


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
        health: Health,
    ) -> None:
        self._database = database
        self._tables = tables
        self._kubernetes = kubernetes
        # Without statuses what is advertised is not known.
        self._statuses = extended(dialects, ServiceStatuses) if options.status_report else []
        self._states = {dialect.name: ServiceEvents() for dialect, _ in self._statuses}
        self._health = health.scope(self.name)
        spread = WriteSpread(random.SystemRandom().random, lambda: 1)
        self._events = EventCorrelator(socket.gethostname(), spread, CONTROLLER)

    @property
    def needed(self) -> bool:
        """True if an enabled dialect has statuses of Services, and they are written."""
        return bool(self._statuses)

    async def run(self, writer: Writer) -> float:
        """Compare Services with the statuses once, and write Events. Raises `KubernetesError`.

        A dialect with a kind that is not read in full is omitted: its Services would seem to ask no
        more, and then to begin to be advertised.
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
            else:
                asked = statuses.asked(dialect, self._database.snapshot())
                compared.append(_Compared(dialect, statuses, asked, {}))
        try:
            # A page at a time, between which the operator answers others.
            async for page in writer.pages(SERVICE.path("v1"), ()):
                for service in filter(None, map(_with_addresses, page)):
                    for of_dialect in compared:
                        of_dialect.add(service)
            for of_dialect in compared:
                troubles += await self._compare(writer, of_dialect)
        except StatusError as error:
            if error.status != FORBIDDEN:
                raise
            self._health.degraded(f"Services and their statuses cannot be read: {error}")
            return POLL_INTERVAL_SECONDS
        events = EventWriter(
            self._events,
            writer,
            random.SystemRandom(),
            report=self._log,
            now=time.monotonic,
            wall=time.time,
        )
        await events.step()
        if dropped := self._events.dropped_to_warn_of(time.monotonic()):
            log.warning("Events are dropped", event_name="operator.events_dropped", events=dropped)
        if texts := list(filter(None, (events.failure, *troubles))):
            self._health.degraded(first_of(texts[0], len(texts)))
        else:
            self._health.ok("Events on Services are written")
        return POLL_INTERVAL_SECONDS

    async def _compare(self, writer: Writer, compared: _Compared) -> list[str]:
        """Record what has changed; returns the statuses that cannot be read, a sentence each."""
        dialect, statuses = compared.dialect, compared.statuses
        kind, namespace = statuses.kind, statuses.namespace(dialect)
        advertised: set[ObjectRef] = set()
        troubles: list[str] = []
        try:
            async for page in writer.pages(kind.path(kind.versions[0], namespace), ()):
                for value in page:
                    try:
                        ref = statuses.advertised(value)
                    except msgspec.ValidationError as error:
                        name = value.get("metadata", {}).get("name", "")
                        troubles.append(f"{ObjectRef(kind.name, namespace, name)}: {error}")
                        continue
                    if ref is not None:
                        advertised.add(ref)
        except StatusError as error:
            if error.status != NOT_SERVED:
                raise
            return []  # older definitions do not have it
        now = time.monotonic()
        for occurrence in self._states[dialect.name].changes(compared.asking, advertised, now):
            self._events.record(occurrence, now, time.time())
        return troubles

    def collect(self) -> Iterator[Metric]:
        """Yield the number of Events that are lost."""
        dropped = CounterMetricFamily(
            "waggle_operator_events_dropped", "Events on Services that were not written at all."
        )
        dropped.add_metric([], self._events.dropped)
        yield dropped

    def _log(self, outcome: EventOutcome) -> None:
        if outcome.rejected and not outcome.repeated:
            log.warning(
                "Event not written",
                event_name="operator.event_rejected",
                object=str(outcome.object),
                reason=outcome.error,
            )


def _with_addresses(value: dict[str, Any]) -> Service | None:
    """Return a Service with addresses of a load balancer; None for another one, or an invalid one."""
    spec, status = value.get("spec") or {}, value.get("status") or {}
    if spec.get("type") != LOAD_BALANCER or not (status.get("loadBalancer") or {}).get("ingress"):
        return None
    try:
        return SERVICE.decode(value)
    except ResourceError:
        return None  # agents report it
