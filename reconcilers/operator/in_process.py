"""The operator's part in a process that reads manifests: what it generates and reports are rows."""

from __future__ import annotations

from typing import Any

from reconcilers.operator.planner import Planner
from reconcilers.sliced_work import Slices, finish
from reconcilers.tables import OF_CLUSTER, IntentTables
from statedb import Database, Table


class LocalOperator:
    """Writes the rows that the intent compiler reads; run it before the compiler."""

    def __init__(self, db: Database, intent: IntentTables, planner: Planner) -> None:
        """``planner`` has ``stored`` False."""
        self._db = db
        self._intent = intent
        self._planner = planner
        self._revisions: tuple[int, ...] | None = None

    @property
    def followed(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make a run due."""
        return self._planner.followed

    def run(self) -> None:
        """Write what changed, at one go."""
        finish(self.slices())

    def slices(self) -> Slices[None]:
        """Write the generated objects, conditions and problems, if a followed table has changed."""
        snapshot = self._db.snapshot()
        revisions = tuple(table.revision(snapshot) for table in self.followed)
        if revisions == self._revisions or not self._planner.is_ready(snapshot):
            return
        intents = tuple((yield from self._planner.operate(snapshot)).values())
        tables = self._intent
        with self._db.write(*map(tables.of, OF_CLUSTER)) as txn:
            for kind in OF_CLUSTER:
                rows = (row for intent in intents for row in getattr(intent, kind.name))
                tables.replace(txn, kind, rows, by_operator=True)
        self._revisions = revisions
