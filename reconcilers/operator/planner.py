"""The operator's plan: the objects that each dialect generates, and the conditions it reports."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from reconcilers.dialect import (
    EVERYTHING_READ,
    ClusterContext,
    ClusterIntent,
    Dialect,
    Feeding,
    Unread,
    operate,
    operated_tables,
)
from reconcilers.intent_tables import OF_CLUSTER, marked
from reconcilers.model import Condition, Delete, ObjectAnnotations, ObjectRef, Problem
from reconcilers.operator.writes import Annotate, Apply, Write
from reconcilers.sliced_work import Slices
from statedb import Database, Snapshot, Table


class Plan(msgspec.Struct, frozen=True):
    """The writes that bring the API server to the desired state."""

    objects: tuple[Write, ...]
    """Generated objects that differ from the API server's, and deletions."""
    conditions: dict[ObjectRef, tuple[Condition, ...]]
    """The desired managed conditions of each object that is reported on; empty removes them."""
    problems: tuple[Problem, ...]
    blocked: Mapping[str, str] = {}
    """The dialects without writes, by name: what of their objects could not be read."""
    states: Mapping[str, Any] = {}
    """The `ClusterIntent.state` of each dialect, by name."""


class Planner:
    """Runs the operator's part of every dialect on one snapshot."""

    def __init__(
        self,
        db: Database,
        dialects: Sequence[Dialect],
        secrets_namespace: str,
        *,
        report: bool = True,
        stored: bool = True,
        installing: Collection[str] = (),
    ) -> None:
        """If ``report`` is false, the plan removes the managed conditions of all objects.

        ``stored`` is False in a process without an API server (`ClusterContext.stored`).
        ``installing`` are the dialects whose peers' routes agents install in the kernel, by name.
        """
        self._db = db
        self._feeding = Feeding(dialects, installing)
        self._dialects = tuple(self._feeding.dialects.values())
        self._report = report
        self._context = ClusterContext(secrets_namespace, stored=stored)
        self._kinds = {kind.name: kind for dialect in dialects for kind in dialect.cluster_kinds}
        self._unread: tuple[Table[Any], ...] | None = None
        """The tables that no source has filled yet; None before the first look."""
        self._last: dict[str, ClusterIntent] = {}
        """The last intent of each dialect that did not fail."""

    @property
    def followed(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make the operator's plan due."""
        tables = {
            table.name: table
            for dialect in self._dialects
            for table in (
                *operated_tables(dialect),
                # Manifests have every kind; an operator reads the kinds of its options only.
                *(() if self._context.stored else dialect.compiled_tables),
            )
        }
        return tuple(tables.values())

    def plan(self, unread: Unread = EVERYTHING_READ) -> Slices[Plan | None]:
        """Return the operator's plan; None before every kind was answered, and one dialect was read.

        Nothing is written for a dialect of which a kind is unread: an object that is not known may
        exist, and no deletion may follow from it. The others do not wait.
        """
        snapshot = self._db.snapshot()
        blocked = self._blocked(snapshot, unread)
        nothing_read = bool(blocked) and len(blocked) == len(self._dialects)
        if unread.waits_for or (nothing_read and not unread.kinds):
            return None
        operated = yield from self.operate(snapshot, unread.objects, blocked)
        intents = tuple(operated.values())
        conditions: dict[ObjectRef, tuple[Condition, ...]] = {}
        for intent in intents:
            for condition in intent.conditions:
                before = conditions.setdefault(condition.object, ())
                if self._report:
                    conditions[condition.object] = (*before, condition)
        writes: list[Write] = [
            Apply(row.object, row.content)
            for intent in intents
            for row in intent.generated
            if row.object in intent.outdated
        ]
        writes += [
            Delete(deletion.object, deletion.uid)
            for intent in intents
            for deletion in intent.deletions
        ]
        writes += [self._annotate(row) for intent in intents for row in intent.annotations]
        problems = tuple(problem for intent in intents for problem in intent.problems)
        states = {name: intent.state for name, intent in self._last.items()}
        return Plan(tuple(writes), conditions, problems, blocked, states)

    def _blocked(self, snapshot: Snapshot, unread: Unread) -> dict[str, str]:
        """Return what could not be read of each dialect that has to wait for it."""
        blocked: dict[str, str] = {}
        waiting = self._waiting(snapshot)
        for dialect in self._dialects:
            tables = operated_tables(dialect)
            names = [unread.kinds[table.name] for table in tables if table.name in unread.kinds]
            names += [table.name for table in tables if table in waiting]
            if names:
                blocked[dialect.name] = names[0]
        return blocked

    def _annotate(self, row: ObjectAnnotations) -> Annotate:
        ref, kind = row.object, self._kinds[row.object.kind]
        metadata: dict[str, Any] = {"name": ref.name, "annotations": dict(row.annotations)}
        if ref.namespace:
            metadata["namespace"] = ref.namespace
        if row.uid:
            # An object that is deleted meanwhile is not created by the write.
            metadata["uid"] = row.uid
        content = {"apiVersion": kind.api_versions[0], "kind": ref.kind, "metadata": metadata}
        return Annotate(ref, content, row.dialect, row.take_over)

    def is_ready(self, snapshot: Snapshot) -> bool:
        """True if every source has been read once, and the operator may plan."""
        return not self._waiting(snapshot)

    def _waiting(self, snapshot: Snapshot) -> tuple[Table[Any], ...]:
        """Return the tables that no source has filled yet; a filled table stays so."""
        waiting = self.followed if self._unread is None else self._unread
        self._unread = tuple(table for table in waiting if not table.initialized(snapshot))
        return self._unread

    def operate(
        self,
        snapshot: Snapshot,
        unread: frozenset[ObjectRef] = frozenset(),
        blocked: Container[str] = frozenset(),
    ) -> Slices[dict[str, ClusterIntent]]:
        """Return what each dialect generates and reports, for the operator's plan, in slices.

        Of dialects that are ``blocked`` the last problems remain; a feeder that is not gets the outcome
        of its objects.
        """
        context = replace(self._context, unread=unread)
        intents: dict[str, ClusterIntent] = {}
        for dialect in reversed(self._dialects):
            if dialect.name in blocked:
                before = self._last.get(dialect.name, ClusterIntent())
                is_fed = any(
                    feeder.feeds == dialect.name and feeder.name not in blocked
                    for feeder in self._dialects
                )
                intent = ClusterIntent(problems=before.problems)
                if is_fed:
                    now = yield from self._operate_one(dialect, snapshot, context, intents)
                    self._last[dialect.name] = before
                    intent = replace(intent, outcome=now.outcome)
            else:
                intent = yield from self._operate_one(dialect, snapshot, context, intents)
            rows = marked(intent, OF_CLUSTER, dialect.name, by_operator=True)
            of_kinds: dict[str, Any] = {kind.name: tuple(own) for kind, own in rows.items()}
            intents[dialect.name] = replace(intent, **of_kinds)
        return {dialect.name: intents[dialect.name] for dialect in self._dialects}

    def _operate_one(
        self,
        dialect: Dialect,
        snapshot: Snapshot,
        context: ClusterContext,
        operated: Mapping[str, ClusterIntent],
    ) -> Slices[ClusterIntent]:
        """Return the intent of a dialect; after a failure the last objects, and the problem."""
        before = self._last.get(dialect.name, ClusterIntent())
        try:
            of_dialect = self._feeding.cluster_context(dialect, context, snapshot, operated)
            of_dialect = replace(of_dialect, state=before.state)
            intent = yield from operate(dialect, snapshot, of_dialect)
        except Exception as error:  # noqa: BLE001  one dialect's error is that dialect's
            text = f"{dialect.title} cannot be operated: {type(error).__name__}: {error}"
            kind = dialect.cluster_kinds[0].name if dialect.cluster_kinds else dialect.title
            # Nothing is written or deleted, and no condition changes, until it works again.
            return ClusterIntent(
                generated=before.generated,
                conditions=before.conditions,
                problems=(Problem((ObjectRef(kind, "", ""),), "", text),),
            )
        self._last[dialect.name] = intent
        return intent
