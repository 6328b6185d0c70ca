"""The route sets of one dialect: which objects contribute which prefixes, kept up to date by change.

The work for a changed object is independent of the number of other objects. A set that is new is
filled by every object once; a set that no peer gets any more is emptied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from reconcilers.dialect import (
    Contributed,
    Dialect,
    Everything,
    JoinConflictError,
    NodeContext,
    RouteSource,
)
from reconcilers.intent.service_addresses import AddressRules
from reconcilers.model import Contribution, ObjectRef, Problem, Route
from reconcilers.tables import BY_OBJECT, KEY, IntentTables, object_id
from speaker.nlri import Family, prefix_to_text
from statedb import ChangeIterator, Database, Key, Snapshot, Table, WriteTxn

Wishes = dict[tuple[Family, bytes], list[Contribution]]


class Counts(NamedTuple):
    """The work of one pass."""

    objects: int
    routes: int


class _Followed(NamedTuple):
    """One table of one source, and the changes of it that have not been seen."""

    source: RouteSource
    table: Table[Any]
    changes: ChangeIterator[Any]


class RouteSets:
    """Keeps the route sets of one dialect."""

    def __init__(self, db: Database, intent: IntentTables, dialect: Dialect) -> None:
        self._intent = intent
        self._dialect = dialect
        self._sources = {source.name: source for source in dialect.sources}
        self._followed = [
            _Followed(source, table, table.changes(db))
            for source in self._sources.values()
            for table in source.tables
        ]
        self.rules: dict[str, Any] = {}
        """The rules of each set, by the name of the set among those of all dialects."""
        self._fresh: list[str] = []
        """Sets to which no object has contributed yet."""
        self._pending: dict[str, dict[Key, None]] = {}
        """Objects by source that contribute again."""
        self._contributing: dict[str, set[Key]] = {name: set() for name in self._sources}
        """Objects by source that contributed something."""
        self._problems: dict[tuple[str, Key], Problem] = {}
        self._conflicts: dict[tuple[str, Family, bytes], Problem] = {}
        self._rejections: dict[str, dict[tuple[str, Key], tuple[Problem, ...]]] = {}
        """By set, and by source and object: addresses that are not advertised."""
        self._addresses = AddressRules()
        self._problems_changed = False

    @property
    def problems(self) -> list[Problem]:
        """The problems of single objects, and of prefixes whose contributions conflict."""
        rejections = (
            problem
            for of_set in self._rejections.values()
            for problems in of_set.values()
            for problem in problems
        )
        return [
            *self._problems.values(),
            *dict.fromkeys(rejections),
            *dict.fromkeys(self._conflicts.values()),
        ]

    def take_problems(self) -> bool:
        """True if the problems have changed since the last call."""
        changed, self._problems_changed = self._problems_changed, False
        return changed

    @property
    def pending(self) -> bool:
        """True if an object contributes again."""
        return bool(self._pending)

    def set_address_rules(self, rules: AddressRules) -> None:
        """Take the rules for addresses of Services; other rules make every object contribute again."""
        if rules == self._addresses:
            return
        self._addresses = rules
        for source, keys in self._contributing.items():
            self._pending.setdefault(source, {}).update(dict.fromkeys(keys))
        for of_set in self._rejections.values():
            for source, key in of_set:
                self._pending.setdefault(source, {})[key] = None

    def collect(self, snapshot: Snapshot) -> None:
        """Note the objects that the changes since the last call affect."""
        for source, table, iterator in self._followed:
            changes = list(iterator.next(snapshot))
            if not changes:
                continue
            affected = source.affected(table, changes)
            if isinstance(affected, Everything):
                affected = (*source.keys(snapshot), *self._contributing[source.name])
            self._pending.setdefault(source.name, {}).update(dict.fromkeys(affected))

    def replace(self, txn: WriteTxn, rules: Mapping[str, Any]) -> int:
        """Take the rules of a compilation; returns the number of routes of sets that are gone."""
        wanted = {f"{self._dialect.name}-{name}": found for name, found in rules.items()}
        self._fresh += [name for name in wanted if name not in self.rules]
        written = 0
        for name in self.rules.keys() - wanted.keys():
            written += self._drop(txn, name)
        self.rules = wanted
        return written

    def _drop(self, txn: WriteTxn, name: str) -> int:
        dropped = 0
        for table in (self._intent.routes, self._intent.conflicting_routes):
            for row in list(table.prefix(txn, KEY, (name,))):
                table.delete(txn, (name, row.family, row.nlri))
                self._forget_conflict((name, row.family, row.nlri))
                dropped += 1
        if self._rejections.pop(name, None):
            self._problems_changed = True
        if name in self._fresh:
            self._fresh.remove(name)
        return dropped

    def contribute(self, txn: WriteTxn, snapshot: Snapshot, context: NodeContext) -> Counts:
        """Let every pending object contribute to its sets, and every object to the new ones."""
        old = [name for name in self.rules if name not in self._fresh]
        objects = routes = 0
        for name, source in self._sources.items():
            pending = self._pending.pop(name, {}) if old else {}
            for key in pending:
                routes += self._object(txn, snapshot, context, source, key, old, new=False)
            objects += len(pending)
            if self._fresh:
                for key in source.keys(snapshot):
                    routes += self._object(
                        txn, snapshot, context, source, key, self._fresh, new=True
                    )
                    objects += 1
        self._fresh = []
        self._pending.clear()
        return Counts(objects, routes)

    def _object(
        self,
        txn: WriteTxn,
        snapshot: Snapshot,
        context: NodeContext,
        source: RouteSource,
        key: Key,
        sets: Sequence[str],
        *,
        new: bool,
    ) -> int:
        """Make one object contribute to these sets; ``new``: it contributes nothing to them yet."""
        ref = source.object(context, key)
        rules = [self.rules[name] for name in sets]
        of_set: dict[str, Wishes] = {}
        rejected: dict[str, dict[Problem, None]] = {}
        if self._problems.pop((source.name, key), None) is not None:
            self._problems_changed = True
        try:
            for found in source.contributions(snapshot, context, key, rules):
                problem = self._rejected(ref, found)
                if problem is None:
                    self._wish(of_set, found)
                else:
                    rejected.setdefault(found.route_set, {})[problem] = None
        except Exception as error:  # noqa: BLE001  one object's error is that object's
            of_set.clear()
            text = f"it cannot be used: {type(error).__name__}: {error}"
            self._problems[source.name, key] = Problem((ref,), "", text, dialect=self._dialect.name)
            self._problems_changed = True
        for name, found_rules in zip(sets, rules, strict=True):
            self._note_rejections(name, (source.name, key), rejected.get(found_rules.name, ()))
        if of_set:
            self._contributing[source.name].add(key)
        elif not new:
            self._contributing[source.name].discard(key)
        if new and not of_set:
            return 0
        written = 0
        for name, found_rules in zip(sets, rules, strict=True):
            wishes = of_set.get(found_rules.name, {})
            written += self._contribute(txn, name, ref, wishes, new=new)
        return written

    def _rejected(self, ref: ObjectRef, found: Contributed) -> Problem | None:
        """Return the problem of an address that a Service names and that is not advertised, or None."""
        if found.address is None:
            return None
        field, nlri = found.address
        rejection = self._addresses.reject_address(found.family, nlri)
        objects: tuple[ObjectRef, ...] = (ref,)
        if rejection is None:
            rejection = self._addresses.reject_prefix(found.family, found.nlri)
            objects = (ref, found.contribution.origin.rule)
        if rejection is None:
            return None
        address = prefix_to_text(found.family, nlri).partition("/")[0]
        text = f"{address} is not advertised: {rejection.message}"
        return Problem(objects, field, text, dialect=self._dialect.name)

    def _note_rejections(
        self, route_set: str, object_: tuple[str, Key], problems: Iterable[Problem]
    ) -> None:
        of_set = self._rejections.setdefault(route_set, {})
        found = tuple(problems)
        if of_set.get(object_, ()) == found:
            return
        self._problems_changed = True
        if found:
            of_set[object_] = found
        else:
            del of_set[object_]

    def _wish(self, of_set: dict[str, Wishes], found: Contributed) -> None:
        wishes = of_set.get(found.route_set)
        if wishes is None:
            wishes = of_set[found.route_set] = {}
        parts = wishes.get((found.family, found.nlri))
        if parts is None:
            wishes[found.family, found.nlri] = [found.contribution]
        elif found.contribution not in parts:
            parts.append(found.contribution)

    def _contribute(
        self, txn: WriteTxn, route_set: str, ref: ObjectRef, wishes: Wishes, *, new: bool
    ) -> int:
        """Make an object contribute exactly this to a set."""
        i = self._intent
        written = 0
        if not new:
            at = (route_set, object_id(ref))
            rows = [*i.routes.find(txn, BY_OBJECT, at)]
            if self._conflicts:
                rows += i.conflicting_routes.find(txn, BY_OBJECT, at)
            for row in rows:
                if (row.family, row.nlri) not in wishes:
                    self._put(txn, route_set, row.family, row.nlri, ref, [])
                    written += 1
        for (family, nlri), parts in wishes.items():
            written += self._put(txn, route_set, family, nlri, ref, parts)
        return written

    def _put(
        self,
        txn: WriteTxn,
        route_set: str,
        family: Family,
        nlri: bytes,
        ref: ObjectRef,
        parts: list[Contribution],
    ) -> int:
        """Write one prefix with the contributions of one object exchanged; 0 if nothing differs."""
        i = self._intent
        key = (route_set, family, nlri)
        present = i.routes.get(txn, key)
        conflicting = i.conflicting_routes.get(txn, key) if key in self._conflicts else None
        before = present or conflicting
        others = [c for c in before.contributions if c.origin.object != ref] if before else []
        joined = tuple(sorted((*others, *parts), key=lambda c: c.origin))
        self._forget_conflict(key)
        row = conflict = None
        if joined:
            try:
                attributes = self._dialect.join(joined)
            except JoinConflictError as error:
                conflict = error
                attributes = joined[0].attributes
            row = Route(route_set, family, nlri, attributes, joined)
        if conflict is not None:
            self._note(key, joined, conflict)
        written = _write(txn, i.routes, key, present, row if conflict is None else None)
        if conflict is not None or conflicting is not None:
            wanted = row if conflict is not None else None
            written += _write(txn, i.conflicting_routes, key, conflicting, wanted)
        return min(1, written)

    def _forget_conflict(self, key: tuple[str, Family, bytes]) -> None:
        if self._conflicts.pop(key, None) is not None:
            self._problems_changed = True

    def _note(
        self,
        key: tuple[str, Family, bytes],
        contributions: Sequence[Contribution],
        conflict: JoinConflictError,
    ) -> None:
        objects = tuple(
            dict.fromkeys(
                ref for part in contributions for ref in (part.origin.object, part.origin.rule)
            )
        )
        self._problems_changed = True
        self._conflicts[key] = Problem(
            objects,
            conflict.field,
            str(conflict),
            category="conflict",
            dialect=self._dialect.name,
        )


def _write(
    txn: WriteTxn,
    table: Table[Route],
    key: tuple[str, Family, bytes],
    present: Route | None,
    wanted: Route | None,
) -> int:
    if wanted == present:
        return 0
    if wanted is None:
        table.delete(txn, key)
    else:
        table.upsert(txn, wanted)
    return 1
