"""The operator's part in a process that reads manifests: what it generates and reports are rows."""

from __future__ import annotations

from typing import Any

from reconcilers.intent_tables import OF_CLUSTER, IntentTables
from reconcilers.operator.planner import Planner
from reconcilers.sliced_work import Slices, finish
from statedb import Database, Revisions, Table


class InProcessOperator:
    """Writes the rows that the intent compiler reads; run it before the compiler."""

    def __init__(self, db: Database, intent: IntentTables, planner: Planner) -> None:
        """``planner`` has ``stored`` False."""
        self._db = db
        self._intent = intent
        self._planner = planner
        self._followed = planner.followed
        self._last: Revisions | None = None
        """Of the tables at the last run."""
        self._depends_on = frozenset(self._followed)
        """With the tables that the last run depended on."""

    @property
    def followed(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make a run of the operator in this process due."""
        return self._followed

    def run(self) -> None:
        """Run the operator's part in this process, and write what changed, at one go."""
        finish(self.slices())

    def slices(self) -> Slices[None]:
        """Write the operator's objects, conditions and problems as rows of this process."""
        snapshot = self._db.snapshot()
        if self._db.changed(self._last, snapshot).isdisjoint(self._depends_on):
            return
        if not self._planner.is_ready(snapshot):
            return
        intents = (yield from self._planner.operate(snapshot)).values()
        further = frozenset(table for intent in intents for table in intent.followed)
        self._depends_on = further.union(self._followed)
        tables = self._intent
        rows = {
            kind: [row for intent in intents for row in getattr(intent, kind.name)]
            for kind in OF_CLUSTER
        }
        outdated = tables.outdated(snapshot, rows, by_operator=True)
        if outdated:
            with self._db.write(*map(tables.of, outdated)) as txn:
                for kind in outdated:
                    tables.replace(txn, kind, rows[kind], by_operator=True)
        self._last = snapshot.revisions
