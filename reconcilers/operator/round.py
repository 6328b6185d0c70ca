"""The operator's plan: what each dialect generates and reports, worked out from one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from reconcilers.dialect import ClusterContext, ClusterIntent, Dialect
from reconcilers.model import Condition, ObjectRef, Problem
from reconcilers.operator.writes import Apply, Write
from reconcilers.tables import IntentTables
from reconcilers.write import make_all
from statedb import Database, Snapshot, Table


class Plan(msgspec.Struct, frozen=True):
    """What has to be written to the API server."""

    objects: tuple[Write, ...]
    """Generated objects that differ from those of the API server, and deletions."""
    conditions: dict[ObjectRef, tuple[Condition, ...]]
    """The managed conditions that each object has to have."""
    problems: tuple[Problem, ...]


class ClusterRound:
    """Runs the operator's part of every dialect."""

    def __init__(
        self,
        db: Database,
        dialects: Sequence[Dialect],
        secrets_namespace: str,
        *,
        report: bool = True,
        stored: bool = True,
    ) -> None:
        """Without ``report`` objects have to have none of the managed conditions.

        ``stored`` is False in a process without an API server (`ClusterContext.stored`).
        """
        self._db = db
        self._dialects = tuple(dialects)
        self._report = report
        self._context = ClusterContext(secrets_namespace, stored=stored)

    @property
    def followed(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make a run due."""
        tables = {
            table.name: table
            for dialect in self._dialects
            for table in (
                *dialect.operated_tables(),
                # Manifests have every kind; an operator reads the kinds of its options only.
                *(() if self._context.stored else dialect.compiled_tables),
            )
        }
        return tuple(tables.values())

    def plan(self) -> Plan | None:
        """Return what has to be written; None before every source has been read once."""
        snapshot = self._db.snapshot()
        if not self.is_ready(snapshot):
            return None
        found = self.operate(snapshot)
        conditions: dict[ObjectRef, tuple[Condition, ...]] = {}
        for made in found.values():
            for ref in made.reported:
                conditions.setdefault(ref, ())
            for condition in made.conditions if self._report else ():
                conditions[condition.object] = (*conditions[condition.object], condition)
        writes: list[Write] = [
            Apply(row.object, row.content)
            for made in found.values()
            for row in made.generated
            if row.object in made.outdated
        ]
        writes += [row for made in found.values() for row in made.deletions]
        problems = tuple(problem for made in found.values() for problem in made.problems)
        return Plan(tuple(writes), conditions, problems)

    def is_ready(self, snapshot: Snapshot) -> bool:
        """True if every source has been read once."""
        return all(table.initialized(snapshot) for table in self.followed)

    def operate(self, snapshot: Snapshot) -> dict[str, ClusterIntent]:
        """Return what each dialect generates and reports, by its name."""
        found = {}
        for dialect in self._dialects:
            made = dialect.operate(snapshot, self._context)
            found[dialect.name] = ClusterIntent(
                generated=tuple(
                    replace(row, dialect=dialect.name, by_operator=True) for row in made.generated
                ),
                outdated=made.outdated,
                deletions=made.deletions,
                conditions=tuple(
                    replace(row, dialect=dialect.name, by_operator=True) for row in made.conditions
                ),
                reported=made.reported,
                problems=tuple(
                    replace(row, dialect=dialect.name, by_operator=True) for row in made.problems
                ),
            )
        return found


class LocalOperator:
    """The operator's part in a process that reads manifests: what it generates are rows.

    Run it before the intent compiler, which reads what is generated.
    """

    def __init__(self, db: Database, intent: IntentTables, round_: ClusterRound) -> None:
        """``round_`` has ``stored`` False."""
        self._db = db
        self._intent = intent
        self._round = round_
        self._revisions: tuple[int, ...] | None = None

    @property
    def followed(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make a run due."""
        return self._round.followed

    def run(self) -> None:
        """Write rows for what is generated and reported, if something has changed."""
        snapshot = self._db.snapshot()
        revisions = tuple(table.revision(snapshot) for table in self.followed)
        if revisions == self._revisions or not self._round.is_ready(snapshot):
            return
        found = tuple(self._round.operate(snapshot).values())
        i = self._intent
        with self._db.write(i.generated, i.conditions, i.problems) as txn:
            make_all(
                txn,
                i.generated,
                [
                    *(row for row in i.generated.all(txn) if not row.by_operator),
                    *(row for made in found for row in made.generated),
                ],
            )
            make_all(
                txn,
                i.conditions,
                [
                    *(row for row in i.conditions.all(txn) if not row.by_operator),
                    *(row for made in found for row in made.conditions),
                ],
            )
            make_all(
                txn,
                i.problems,
                [
                    *(row for row in i.problems.all(txn) if not row.by_operator),
                    *(row for made in found for row in made.problems),
                ],
            )
        self._revisions = revisions
