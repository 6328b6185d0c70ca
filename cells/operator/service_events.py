"""The leader's Events on Services: an address is advertised by no node, or begins to be advertised."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable
from typing import Any, Final

import structlog

from cells.hive import Group, Health
from reconcilers.dialect import Dialect, ServiceStatuses, extended
from reconcilers.model import ObjectRef
from reconcilers.report.event_writer import EventOutcome, EventWriter
from reconcilers.report.events import EventCorrelator
from reconcilers.report.service_events import AskingService, ServiceEvents
from reconcilers.target.fleet import WriteSpread
from resources.core import Service
from resources.core.kinds import SERVICE
from resources.errors import ResourceError
from resources.kubernetes import StatusError, Writer
from statedb import Database

POLL_INTERVAL_SECONDS = 60.0
"""Between two passes."""
CONTROLLER: Final = "waggle.dev/operator"
LOAD_BALANCER: Final = "LoadBalancer"
REFUSED: Final = (403, 404)

log = structlog.get_logger("waggle.operator")


class ServiceEventsCheck:
    """A `cells.operator.leader_check.LeaderCheck`."""

    name = "service-events"

    def __init__(self, database: Database, dialects: Group[Dialect], health: Health) -> None:
        self._database = database
        self._statuses = extended(dialects, ServiceStatuses)
        self._states = {dialect.name: ServiceEvents() for dialect, _ in self._statuses}
        self._health = health.scope(self.name)
        spread = WriteSpread(random.SystemRandom().random, lambda: 1)
        self._events = EventCorrelator(socket.gethostname(), spread, CONTROLLER)

    @property
    def needed(self) -> bool:
        """True if an enabled dialect has statuses of Services."""
        return bool(self._statuses)

    async def run(self, writer: Writer) -> float:
        """Compare Services with the statuses once, and write Events. Raises `KubernetesError`."""
        try:
            services = [
                service
                async for page in writer.pages(SERVICE.path("v1"), ())
                for service in map(_with_addresses, page)
                if service is not None
            ]
            for dialect, statuses in self._statuses:
                await self._compare(writer, dialect, statuses, services)
        except StatusError as error:
            if error.status not in REFUSED:
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
        if events.failure:
            self._health.degraded(events.failure)
        else:
            self._health.ok("Events on Services are written")
        return POLL_INTERVAL_SECONDS

    async def _compare(
        self, writer: Writer, dialect: Dialect, statuses: ServiceStatuses, services: list[Service]
    ) -> None:
        asked: Callable[[Service], tuple[str, ...]] = statuses.asked(
            dialect, self._database.snapshot()
        )
        asking: dict[ObjectRef, AskingService] = {}
        for service in services:
            if addresses := asked(service):
                ref = ObjectRef(SERVICE.name, *service.key)
                asking[ref] = AskingService(ref, service.metadata.uid, addresses)
        kind, namespace = statuses.kind, statuses.namespace(dialect)
        advertised = {
            ref
            async for page in writer.pages(kind.path(kind.versions[0], namespace), ())
            for ref in map(statuses.advertised, page)
            if ref is not None
        }
        now = time.monotonic()
        for occurrence in self._states[dialect.name].changes(asking, advertised, now):
            self._events.record(occurrence, now, time.time())

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
