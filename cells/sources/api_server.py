"""An API server as the source of objects, of one node or of the cluster: for the kubernetes cells.

Health and log report the state of each kind's feed. An outage of the API server stops nothing: the
last known objects stay in the tables, and one line of health reports the server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import msgspec
import structlog
from prometheus_client.core import Metric

from cells.hive import Health, SettingError
from cells.hive.failing_job import Watch
from cells.hive.jobs import Jobs
from cells.hive.lifecycle import Lifecycle
from cells.options import KubernetesOptions
from cells.sources.feed_log import FeedLog
from cells.sources.feed_metrics import FeedMetrics
from cells.sources.resources import ApiServers, EventTraceLinks, MassWithdrawHold
from reconcilers.dialect import Unread
from reconcilers.model import ObjectRef
from resources import metav1
from resources.enumeration import first_of
from resources.errors import ObjectName
from resources.ingest import Ingest
from resources.kubernetes import (
    Access,
    Connection,
    FeedStatus,
    KubernetesSource,
    Phase,
    Reading,
    Timeouts,
    Writer,
)
from resources.row_updates import replace_all
from resources.source import SourceProblem
from resources.streams import guarded
from resources.tables import Tables
from statedb import Database

TIMEOUTS = Timeouts()
"""Time-outs and pauses of the source."""

FIRST_ANSWER_SECONDS: Final = 10.0
"""For which all dialects wait for the first answer about each kind: a request may hang for a minute."""
UNREAD_SECONDS: Final = 2.0
"""Until jobs that need what has not been read look again."""
ALL_VALID: Final = "all objects are valid"
log = structlog.get_logger("waggle.kubernetes")


class Kubernetes:
    """The source, its subscriber, and the reports of both."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        trace_links: EventTraceLinks,
        access: Access,
        reading: Reading,
        source: KubernetesSource,
        health: Health,
        lifecycle: Lifecycle,
        jobs: Jobs,
        api_servers: ApiServers,
        clock: Callable[[], float] = time.time,
    ) -> None:
        api_servers.add(self)
        self.access = access
        self._database = database
        self._tables = tables
        self._clock = clock
        self._log = FeedLog(clock)
        self._away_since = 0.0
        """Unix time of the first failure of the present outage; 0 while the API server answers."""
        self._answered = False
        self._metrics = FeedMetrics()
        self._answers_until: float | None = None
        """End of `FIRST_ANSWER_SECONDS`, by the loop's clock; None before the start."""
        self._health = health
        self._statuses: dict[str, FeedStatus] = {}
        self._known: frozenset[SourceProblem] = frozenset()
        self.source = source
        self._watch = Watch(self.source.run)
        fail = self._watch.fail
        ingest = Ingest(database, tables, self.source, trace_links, fail, reading.kinds)
        self.source.statuses.subscribe(guarded(self._on_statuses, fail), fail)
        self.source.problems.subscribe(guarded(self._problems, fail), fail)

        async def start() -> None:
            ingest.subscribe()

        lifecycle.append("kubernetes", start=start)
        jobs.add("watch", self._run)
        jobs.add("log", self._log.run)

    @asynccontextmanager
    async def writer(self, manager: str) -> AsyncIterator[Writer]:
        """Open a connection for the writes of one job, whose failures affect no other job."""
        connection = Connection(self.access)
        try:
            yield Writer(connection, manager)
        finally:
            await connection.close()

    async def _run(self) -> None:
        self._health.ok(f"reading from {self.access}")
        if self._answers_until is None:
            self._answers_until = asyncio.get_running_loop().time() + FIRST_ANSWER_SECONDS
        await self._watch.run()

    @property
    def unread(self) -> Unread:
        """Kinds and objects that could not be read, or not in full.

        A kind that was answered is unread until its objects are in its table, a turn or two later.
        """
        kinds = {kind.name: kind for kind in self.source.kinds}
        if not self._statuses:
            # The source has not begun.
            return Unread(next(iter(kinds), ""), {kind.table: kind.name for kind in kinds.values()})
        snapshot = self._database.snapshot()

        def is_complete(status: FeedStatus) -> bool:
            if status.object_name:
                return not status.unread
            table = self._tables.of(kinds[status.kind])
            return not (status.unread or table.pending_initializers(snapshot))

        unread = [status for status in self._statuses.values() if not is_complete(status)]
        of_kinds = [status for status in unread if not status.object_name]
        until = self._answers_until
        is_waiting = until is None or asyncio.get_running_loop().time() < until
        waits_for = (s.name for s in of_kinds if s.phase is Phase.WAITING or not s.unread)
        return Unread(
            next(waits_for, "") if is_waiting else "",
            {kinds[status.kind].table: status.name for status in of_kinds},
            frozenset(
                ObjectRef(status.kind, status.namespace, status.object_name)
                for status in unread
                if status.object_name
            ),
        )

    def _on_statuses(self, statuses: tuple[FeedStatus, ...]) -> None:
        self._write_unread(statuses)
        for name in self._statuses.keys() - {status.name for status in statuses}:
            del self._statuses[name]
            self._health.scope(name).remove()
        for status in statuses:
            before = self._statuses.get(status.name)
            self._statuses[status.name] = status
            if before is None or (before.phase, before.message) != (status.phase, status.message):
                self._show(status)
        cause = self._report_server()
        self._log.report(self._statuses.values(), self._away_since, cause)

    def _write_unread(self, statuses: Iterable[FeedStatus]) -> None:
        """Write the names of the objects and kinds that could not be read, where they changed."""
        table = self._tables.unread_objects
        names = {
            ObjectName(status.kind, status.namespace, status.object_name)
            for status in statuses
            if status.unread and (status.object_name or status.phase is Phase.FORBIDDEN)
        }
        if names != set(table.all(self._database.snapshot())):
            with self._database.write(table) as txn:
                replace_all(txn, table, names)

    def _report_server(self) -> str:
        """Report an outage of the API server: kinds fail, and none is followed; returns the cause."""
        statuses = self._statuses.values()
        if any(status.phase in (Phase.FOLLOWING, Phase.HOLDING) for status in statuses):
            self._answered = True
            if self._away_since:
                self._away_since = 0.0
                self._health.ok(f"reading from {self.access}")
            return ""
        cause = next((status.cause for status in statuses if status.cause), "")
        if not cause:
            return ""
        if not self._away_since:
            self._away_since = self._clock()
        since = metav1.timestamp(self._away_since)
        known = "the last known state is kept" if self._answered else "nothing has been read yet"
        self._health.degraded(f"the API server cannot be read since {since}; {known}: {cause}")
        return cause

    def _show(self, status: FeedStatus) -> None:
        scope = self._health.scope(status.name)
        match status.phase:
            case Phase.WAITING:
                scope.ok("waiting for the first list")
            case Phase.FOLLOWING:
                scope.ok("listed, and watched since")
            case Phase.MISSING:
                scope.stopped(status.message)
            case Phase.HOLDING | Phase.REMOVED | Phase.FORBIDDEN | Phase.FAILING:
                scope.degraded(status.message)

    def _problems(self, problems: tuple[SourceProblem, ...]) -> None:
        present = frozenset(problems)
        # An object with another problem than before is not valid.
        solved = {problem.object for problem in self._known} - {
            problem.object for problem in present
        }
        for name in sorted(solved, key=str):
            log.info("object is valid again", event_name="kubernetes.solved", object=name)
        for problem in sorted(present - self._known, key=str):
            log.warning(
                "invalid object",
                event_name="kubernetes.problem",
                object=problem.object,
                field=problem.field or None,
                reason=problem.message,
            )
        self._known = present
        scope = self._health.scope("objects")
        own = [str(problem) for problem in present if not self._tables.is_of_tenant(problem)]
        if own:
            scope.degraded(first_of(min(own), len(own)))
        else:
            scope.ok(f"invalid objects of tenants: {len(present)}" if present else ALL_VALID)

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics of the feeds."""
        return self._metrics.collect(self.source.reflectors)

    @property
    def certificate_ends(self) -> Mapping[str, float]:
        """When the certificates end by which the API server is reached (`CertificateHolder`)."""
        return self.source.certificate_ends

    @property
    def server(self) -> str:
        """The URL of the API server that this cell reads; empty before the first connection."""
        return self.source.server

    @property
    def is_current(self) -> bool:
        """Whether every kind that the API server has is followed, and no object is held."""
        phases = [status.phase for status in self._statuses.values()]
        return bool(phases) and all(phase in (Phase.FOLLOWING, Phase.MISSING) for phase in phases)


def make_access(options: KubernetesOptions) -> Access:
    """Return how the API server is reached."""
    if options.kubeconfig == "":
        raise SettingError("", "--kubeconfig", "is empty")
    return Access(options.kubeconfig or "", options.context)


def make_source(access: Access, reading: Reading, hold: MassWithdrawHold) -> KubernetesSource:
    """Return the source that lists and watches."""
    timeouts = msgspec.structs.replace(TIMEOUTS, mass_withdraw_hold=hold.seconds)
    return KubernetesSource(
        access, reading.kinds, reading.selections, node=reading.node, timeouts=timeouts
    )
