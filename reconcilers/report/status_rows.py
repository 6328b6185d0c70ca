"""The status of each object that this node reports on, as rows of the table ``object-statuses``.

Level-triggered: every dialect computes its statuses whole, and a row is written where it differs. Of a
dialect that fails the last statuses are kept, and an unread dialect has none yet: the API server's
statuses stay. The others are not affected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from reconcilers.dialect import Dialect, ObjectStatus, ReportContext, ReportedStatuses, extended
from reconcilers.intent_tables import KEY, IntentTables, object_id
from resources.row_updates import replace_all
from speaker.api import InstanceStatus, PeerStatus
from statedb import Database, Index, Table


class StatusRows:
    """Keeps the table; `run` does what is due."""

    def __init__(
        self,
        database: Database,
        intent: IntentTables,
        dialects: Sequence[Dialect],
        node: str,
        sessions: Callable[[], Sequence[PeerStatus]],
        instances: Callable[[], Sequence[InstanceStatus]] = tuple,
    ) -> None:
        """``sessions`` and ``instances`` return the state of all of them."""
        self._instances = instances
        self.table: Table[ObjectStatus] = database.table(
            "object-statuses", Index(KEY, lambda row: object_id(row.object))
        )
        self._database = database
        self._intent = intent
        self._node = node
        self._sessions = sessions
        self._reported = extended(dialects, ReportedStatuses)
        self.failures: dict[str, Exception] = {}
        """Errors of the last run, by dialect."""

    @property
    def followed(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make the rows of statuses due; counts change without any."""
        i = self._intent
        tables: dict[str, Table[Any]] = {
            table.name: table for dialect, _ in self._reported for table in dialect.compiled_tables
        }
        if not tables:
            return ()
        return (
            *tables.values(),
            i.generated,
            i.problems,
            i.reconcile_statuses,
            i.instances,
            i.peers,
        )

    def run(self, now: float) -> bool:
        """Compute the rows of all statuses; ``now`` is Unix time. Returns True if one has changed."""
        snapshot = self._database.snapshot()
        before = {row.object: row for row in self.table.all(snapshot)}
        sessions, instances = self._sessions(), self._instances()
        self.failures.clear()
        rows: list[ObjectStatus] = []
        for dialect, reported in self._reported:
            name = dialect.name
            if self._intent.pending_dialects.get(snapshot, (name,)) is not None:
                continue
            context = ReportContext(
                node=self._node,
                dialect=name,
                intent=self._intent,
                sessions=sessions,
                before=before,
                now=now,
                instances=instances,
            )
            try:
                statuses = [
                    replace(row, dialect=name)
                    for row in reported.statuses(dialect, snapshot, context)
                ]
            except Exception as error:  # noqa: BLE001  one dialect's error is that dialect's
                self.failures[name] = error
                statuses = [row for row in before.values() if row.dialect == name]
            rows += statuses
        if {row.object: row for row in rows} == before:
            return False
        with self._database.write(self.table) as txn:
            return replace_all(txn, self.table, rows) > 0
