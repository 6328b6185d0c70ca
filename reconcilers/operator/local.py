"""The operator's part in a process that reads manifests: what it generates and reports are rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

from reconcilers.operator.planner import Planner
from reconcilers.slices import Slices, finish
from reconcilers.tables import IntentTables
from resources.row_updates import replace_all
from statedb import Database, Table, WriteTxn


class _Row(Protocol):
    @property
    def by_operator(self) -> bool: ...


T = TypeVar("T", bound=_Row)


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
        if (yield from self._planner.prepare(snapshot)):
            yield
        intents = tuple(self._planner.operate(snapshot).values())
        tables = self._intent
        written = (tables.generated, tables.conditions, tables.problems, tables.annotations)
        with self._db.write(*written) as txn:
            generated = (row for intent in intents for row in intent.generated)
            _replace_operator_rows(txn, tables.generated, generated)
            conditions = (row for intent in intents for row in intent.conditions)
            _replace_operator_rows(txn, tables.conditions, conditions)
            problems = (row for intent in intents for row in intent.problems)
            _replace_operator_rows(txn, tables.problems, problems)
            annotations = (row for intent in intents for row in intent.annotations)
            _replace_operator_rows(txn, tables.annotations, annotations)
        self._revisions = revisions


def _replace_operator_rows(txn: WriteTxn, table: Table[T], rows: Iterable[T]) -> None:
    """Replace the operator's rows of a table; those of the node's part are kept."""
    of_node = [row for row in table.all(txn) if not row.by_operator]
    replace_all(txn, table, [*of_node, *rows])
