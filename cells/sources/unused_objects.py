"""The unused-objects cell: the objects of API dialects that are off, with the flag that reads them.

The cells of the sources count: of manifests what is not read, of an API server what a list of a kind
counts (`cells.sources.kubernetes`).
"""

from __future__ import annotations

import structlog

from cells.dialects.cell import DialectCell
from cells.hive import Health, Wiring
from cells.hive.composition import Composition
from cells.hive.option_loading import ENABLE
from reconcilers.unused_objects import ObjectCounts, UnusedObjects, UnusedObjectsTable
from statedb import Database, Table

log = structlog.get_logger("waggle.dialects")


class UnusedObjectsLog:
    """Keeps the table ``unused-objects``, and logs its changes; sources put their counts."""

    def __init__(self, unused: UnusedObjectsTable, database: Database, health: Health) -> None:
        self._unused = unused
        self._database = database
        self._health = health
        self._changes = unused.table.changes(database)
        self.dialects = unused.dialects
        """The dialects that are off."""
        health.ok("no objects of a dialect that is off" if self.dialects else "every dialect is on")

    def put_unread(self, unread: ObjectCounts) -> None:
        """Replace the rows by counts of ``apiVersion`` and kind, whatever the version."""
        counts: dict[tuple[str, str], int] = {}
        for (api_version, kind), number in unread.items():
            group = api_version.rpartition("/")[0]
            counts[group, kind] = counts.get((group, kind), 0) + number
        self.put(counts)

    def put(self, counts: ObjectCounts) -> None:
        """Replace the rows, and log what has changed; other kinds may be among the counts."""
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
    off = [cell.entry for cell in composition.disabled() if isinstance(cell, DialectCell)]
    return UnusedObjectsTable(database, off, lambda name: f"{ENABLE} {name}")


def unused_table(unused: UnusedObjectsTable) -> Table[UnusedObjects]:
    """Return the rows, for views."""
    return unused.table


WIRING = Wiring(
    private=(make_unused,),
    provides=(unused_table, UnusedObjectsLog),
    invokes=(UnusedObjectsLog,),
)
