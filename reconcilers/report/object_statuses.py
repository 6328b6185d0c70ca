"""The status of each object that this node reports on, as rows of the table ``object-statuses``.

Level-triggered: every dialect computes its statuses whole, and a row is written where it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from reconcilers.dialect import Dialect, ObjectStatus, Reporter
from reconcilers.tables import KEY, IntentTables, object_id
from reconcilers.write import make_all
from speaker.api import PeerStatus
from statedb import Database, Index, Table


class ObjectStatuses:
    """Keeps the table; `run` does what is due."""

    def __init__(
        self,
        database: Database,
        intent: IntentTables,
        dialects: Sequence[Dialect],
        node: str,
        sessions: Callable[[], Sequence[PeerStatus]],
    ) -> None:
        """``sessions`` returns the state of all sessions."""
        self.table: Table[ObjectStatus] = database.table(
            "object-statuses", Index(KEY, lambda row: object_id(row.object))
        )
        self._database = database
        self._sessions = sessions
        self._reporters: dict[str, Reporter] = {
            dialect.name: reporter
            for dialect in dialects
            if (reporter := dialect.reporter(intent, node)) is not None
        }

    @property
    def followed(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make a run due; counts of routes change without any."""
        tables = {
            table.name: table for reporter in self._reporters.values() for table in reporter.tables
        }
        return tuple(tables.values())

    def run(self, now: float) -> bool:
        """Compute all statuses; ``now`` is Unix time. Returns True if one has changed."""
        snapshot = self._database.snapshot()
        before = {row.object: row for row in self.table.all(snapshot)}
        sessions = self._sessions()
        rows = [
            replace(row, dialect=name)
            for name, reporter in self._reporters.items()
            for row in reporter.statuses(snapshot, sessions, before, now)
        ]
        if {row.object: row for row in rows} == before:
            return False
        with self._database.write(self.table) as txn:
            return make_all(txn, self.table, rows) > 0
