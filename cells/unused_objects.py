"""The unused-objects cell: counts the objects of API dialects that are off, and names the flag.

From manifests the source counts what it does not read. From an API server the number of objects is
listed every ten minutes, as far as the permissions of the agent go.
"""

from __future__ import annotations

import asyncio
import random

import structlog

from cells.dialects.cell import disabled
from cells.hive import Cell, Composition, Health, Jobs
from cells.hive.option_loading import ENABLE
from cells.kubernetes import Kubernetes
from reconcilers.unused_objects import ObjectCounts, UnusedObjects, UnusedObjectsTable
from resources.kind import Kinds
from resources.kubernetes import KubernetesError, count_objects
from resources.manifests import ManifestsSource
from resources.tables import Tables
from statedb import Database, Table

MANAGER = "waggle-agent"
"""The field manager; nothing is written."""
POLL_INTERVAL_SECONDS = 600.0
"""Between two counts of an API server's objects."""
RETRY_SECONDS = 30.0
"""After a count that failed."""

log = structlog.get_logger("waggle.dialects")


class UnusedObjectsCounter:
    """Keeps the table ``unused-objects``, and logs its changes."""

    def __init__(
        self,
        unused: UnusedObjectsTable,
        database: Database,
        tables: Tables,
        manifests: ManifestsSource | None,
        kubernetes: Kubernetes | None,
        health: Health,
        jobs: Jobs,
    ) -> None:
        self._unused = unused
        self._database = database
        self._kubernetes = kubernetes
        self._health = health
        self._changes = unused.table.changes(database)
        wanted = Kinds(*(dialect.configuration_kinds() for dialect in unused.dialects))
        self._kinds = wanted.without(*tables.kinds)
        if not self._kinds:
            health.ok("every dialect is on")
            return
        health.ok("no objects of a dialect that is off")
        if manifests is not None:
            manifests.unread.subscribe(self._count_unread)
        if kubernetes is not None:
            jobs.add("count", self._count)

    def _count_unread(self, unread: ObjectCounts) -> None:
        """Count objects by ``apiVersion`` and kind, whatever the version."""
        counts: dict[tuple[str, str], int] = {}
        for (api_version, kind), number in unread.items():
            group = api_version.rpartition("/")[0]
            counts[group, kind] = counts.get((group, kind), 0) + number
        self._put(counts)

    async def _count(self) -> None:
        assert self._kubernetes is not None  # noqa: S101 - else there is no such job
        rng = random.SystemRandom()
        while True:
            pause = POLL_INTERVAL_SECONDS
            try:
                async with self._kubernetes.writer(MANAGER) as writer:
                    self._put(await count_objects(writer, self._kinds))
            except KubernetesError:
                # The kubernetes cell reports an API server that does not answer.
                pause = RETRY_SECONDS
            await asyncio.sleep(pause * rng.uniform(0.75, 1.25))

    def _put(self, counts: ObjectCounts) -> None:
        self._unused.put(counts)
        snapshot = self._database.snapshot()
        for change in self._changes.next(snapshot):
            row = change.row
            if change.deleted:
                log.info(
                    "no objects of a dialect that is off are left",
                    event_name="dialects.used",
                    dialect=row.dialect,
                )
            else:
                log.info(
                    "objects are not read: their dialect is off",
                    event_name="dialects.unused",
                    dialect=row.dialect,
                    objects=row.objects,
                    flag=row.flag,
                )
        rows = sorted(self._unused.table.all(snapshot), key=lambda row: row.dialect)
        text = "; ".join(row.message for row in rows)
        self._health.ok(text or "no objects of a dialect that is off")


def make_unused(database: Database, composition: Composition) -> UnusedObjectsTable:
    """Return the table."""
    return UnusedObjectsTable(database, disabled(composition), lambda name: f"{ENABLE} {name}")


def unused_table(unused: UnusedObjectsTable) -> Table[UnusedObjects]:
    """Return the rows, for those who show them."""
    return unused.table


CELL = Cell(
    name="unused-objects",
    description="Counts the objects of API dialects that are off.",
    private=(make_unused,),
    provides=(unused_table,),
    invokes=(UnusedObjectsCounter,),
)
