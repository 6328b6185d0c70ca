"""The route sets of one dialect: which objects contribute which prefixes, kept up to date by change.

The work for a changed object is independent of the number of other objects. A set that is new is
filled by every object once; a set that no peer gets any more is emptied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from reconcilers.dialect import (
    Contributed,
    Dialect,
    Everything,
    NodeContext,
    PrefixSource,
    Rejected,
    RouteSource,
)
from reconcilers.intent.address_limits import AddressesOfService, AddressLimits
from reconcilers.intent.contribution_problems import ContributionProblems
from reconcilers.intent.object_problems import ObjectProblems
from reconcilers.intent.rejections import Rejections
from reconcilers.intent.route_rows import Contributions, RouteKey, RouteRows
from reconcilers.intent.service_addresses import (
    AddressChanges,
    AddressRules,
    JudgedAddresses,
    embedded_ipv4,
)
from reconcilers.intent_tables import KEY, IntentTables
from reconcilers.model import Contribution, ObjectRef, Problem
from reconcilers.sliced_work import BATCH_PIECES, Pieces, Slices, changes_of
from speaker.nlri import IPV6_UNICAST, Family
from statedb import ChangeIterator, Database, Key, Snapshot, Table, WriteTxn


class Counts(NamedTuple):
    """The work of one pass."""

    objects: int
    routes: int


class _Sets(NamedTuple):
    """Route sets to which objects contribute."""

    names: frozenset[str]
    """Among the sets of all dialects."""
    rules: tuple[Any, ...]
    new: bool
    """True if no object has contributed to them yet."""


class _Followed(NamedTuple):
    """One table of one source, and the changes of it that have not been seen."""

    source: RouteSource
    table: Table[Any]
    changes: ChangeIterator[Any]


class DialectRouteSets:
    """Keeps the route sets of one dialect."""

    def __init__(
        self,
        db: Database,
        intent: IntentTables,
        dialect: Dialect,
        node: str,
        sources: Sequence[RouteSource],
        pieces: Pieces,
        limits: AddressLimits,
        object_problems: ObjectProblems,
        on_change: Callable[[str, Family, bytes], None],
    ) -> None:
        """``sources`` belong to the dialect, and to the dialects that feed it.

        ``pieces`` counts the prefixes of a slice. ``object_problems`` takes the problems of objects,
        ``on_change`` each changed route.
        """
        self._intent = intent
        self._node = ObjectRef("Node", "", node)
        self._dialect = dialect
        self._sources = {source.name: source for source in sources}
        self._followed = [
            _Followed(source, table, table.changes(db))
            for source in self._sources.values()
            for table in source.tables
        ]
        self.rules: dict[str, Any] = {}
        """The rules of each set, by the name of the set among the sets of all dialects."""
        self._fresh: list[str] = []
        """Sets to which no object has contributed yet."""
        self._pending: dict[str, dict[Key, AbstractSet[RouteKey] | None]] = {}
        """Objects by source that contribute again, with these prefixes or, None, with all."""
        self._failed: set[tuple[str, Key]] = set()
        """Objects, by source and key, that contribute nothing as their source has failed."""
        self._contributing: dict[str, dict[Key, frozenset[str]]] = {
            name: {} for name in self._sources
        }
        """Objects by source that contributed something, with the sets that they contributed to."""
        self._same: dict[frozenset[str], frozenset[str]] = {}
        """The sets of objects: most objects contribute to the same ones, and share one object."""
        self._source_failures: dict[str, Problem] = {}
        """Sources that failed as a whole."""
        self._pieces = pieces
        self._rows = RouteRows(intent, dialect, pieces, on_change)
        self._contribution_problems = ContributionProblems(dialect.name, node, object_problems)
        self._limits = limits
        self._addresses = AddressRules()
        self._judged = JudgedAddresses()
        self._problems_changed = False

    @property
    def problems(self) -> list[Problem]:
        """The problems of the dialect's route sources, and of prefixes with conflicts."""
        return [*self._source_failures.values(), *self._rows.conflicts]

    def take_problems(self) -> bool:
        """True if the problems of the dialect's route sets have changed since the last call."""
        changed = (
            self._problems_changed or self._rows.changed or self._contribution_problems.changed
        )
        self._problems_changed = self._rows.changed = self._contribution_problems.changed = False
        return changed

    @property
    def pending(self) -> bool:
        """True if an object is to contribute to route sets, or problems are to be written."""
        return (
            bool(self._pending)
            or self._problems_changed
            or self._rows.changed
            or self._contribution_problems.changed
        )

    def set_address_rules(self, rules: AddressRules, changes: AddressChanges) -> None:
        """Set the rules by which the dialect's route sets take addresses of Services.

        Objects with an address that may be judged differently contribute again.
        """
        self._addresses = rules
        for source, key in self._judged.affected(changes) if changes else ():
            self._pending.setdefault(source, {})[key] = None

    def collect(self, snapshot: Snapshot) -> Slices[None]:
        """Note the objects of the dialect's route sources that changes affect, in slices.

        Where a source fails, all of its objects contribute again, until it no longer fails.
        """
        for source, table, iterator in self._followed:
            failed = everything = source.name in self._source_failures
            affected: dict[Key, None] = {}
            error: Exception | None = None
            for changes in changes_of(iterator, snapshot, self._pieces):
                if changes is None:
                    yield
                    continue
                try:
                    answer = source.affected(table, changes)
                    if isinstance(answer, Everything):
                        everything = True
                    else:
                        affected.update(dict.fromkeys(answer))
                except Exception as caught:  # noqa: BLE001  one source's error is that source's
                    error = caught
            if error is None and everything:
                try:
                    keys = source.keys(snapshot, tuple(self.rules.values()))
                    affected = dict.fromkeys((*keys, *self._contributing[source.name]))
                except Exception as caught:  # noqa: BLE001  one source's error is that source's
                    error = caught
            if error is not None:
                self._fail(source, error)
                continue
            if affected:
                self._pending.setdefault(source.name, {}).update(affected)
            if failed:
                del self._source_failures[source.name]
                self._problems_changed = True

    def judge_again(self, services: Iterable[Key]) -> None:
        """Let Services contribute to route sets again: they may announce something else now."""
        keys = dict.fromkeys(services)
        for source in self._sources.values() if keys else ():
            if self._limits.table in source.tables:
                self._pending.setdefault(source.name, {}).update(keys)

    def recompiled(self, objects: Mapping[str, Mapping[Key, AbstractSet[RouteKey] | None]]) -> None:
        """Let objects contribute to route sets again, by source, after a compilation."""
        for source, prefixes_of in objects.items():
            if source not in self._sources or not prefixes_of:
                continue
            pending = self._pending.setdefault(source, {})
            for key, prefixes in prefixes_of.items():
                before = pending.get(key, frozenset())
                if before is None or prefixes is None:
                    pending[key] = None
                else:
                    pending[key] = before | prefixes

    def _fail(self, source: RouteSource, error: Exception) -> None:
        text = f"{source.name} routes are not up to date: {type(error).__name__}: {error}"
        self._source_failures[source.name] = Problem(
            (self._node,), "", text, dialect=self._dialect.name
        )
        self._problems_changed = True

    def replace(self, txn: WriteTxn, rules: Mapping[str, Any]) -> Slices[int]:
        """Take the rules of the dialect's compilation; returns the number of routes now gone."""
        wanted = {f"{self._dialect.name}-{name}": rule_set for name, rule_set in rules.items()}
        self._fresh += [name for name in wanted if name not in self.rules]
        written = 0
        dropped = self.rules.keys() - wanted.keys()
        for name in dropped:
            written += yield from self._drop(txn, name)
        if dropped:
            self._contribution_problems.drop(dropped)
        self.rules = wanted
        return written

    def _drop(self, txn: WriteTxn, name: str) -> Slices[int]:
        dropped = 0
        for table in (self._intent.routes, self._intent.conflicting_routes):
            for row in table.prefix(txn, KEY, (name,)):
                table.delete(txn, (name, row.family, row.nlri))
                self._rows.forget((name, row.family, row.nlri))
                dropped += 1
                if self._pieces.fill_slice():
                    yield
        if name in self._fresh:
            self._fresh.remove(name)
        return dropped

    def contribute(self, txn: WriteTxn, snapshot: Snapshot, context: NodeContext) -> Slices[Counts]:
        """Let pending objects contribute to their route sets, and all objects to new ones."""
        fresh = self._sets(frozenset(self._fresh), new=True)
        old = self._sets(self.rules.keys() - fresh.names, new=False)
        objects = routes = 0
        for name, source in self._sources.items():
            pending = self._pending.pop(name, {}) if old.names else {}
            for key, prefixes in pending.items():
                routes += yield from self._object(
                    txn, snapshot, context, source, key, old, prefixes
                )
            objects += len(pending)
            for key in self._keys(source, snapshot, fresh.rules) if fresh.names else ():
                routes += yield from self._object(txn, snapshot, context, source, key, fresh)
                objects += 1
        self._fresh = []
        self._pending.clear()
        return Counts(objects, routes)

    def _sets(self, names: AbstractSet[str], *, new: bool) -> _Sets:
        rules = tuple(rules for name, rules in self.rules.items() if name in names)
        return _Sets(frozenset(names), rules, new)

    def _keys(self, source: RouteSource, snapshot: Snapshot, rules: Sequence[Any]) -> Sequence[Key]:
        try:
            return tuple(source.keys(snapshot, rules))
        except Exception as error:  # noqa: BLE001  one source's error is that source's
            self._fail(source, error)
            return ()

    def _object(
        self,
        txn: WriteTxn,
        snapshot: Snapshot,
        context: NodeContext,
        source: RouteSource,
        key: Key,
        sets: _Sets,
        prefixes: AbstractSet[RouteKey] | None = None,
    ) -> Slices[int]:
        """Make one object contribute to these sets, with these prefixes or with all.

        The work is that of the sets to which it contributes, or contributed.
        """
        of_set: dict[str, Contributions] = {}
        rejected: dict[str, Rejections] = {}
        judged: dict[bytes, None] = {}
        ref: ObjectRef | None = None
        at = (source.name, key)
        try:
            ref = source.object(context, key)
            if prefixes is None or at in self._failed or not isinstance(source, PrefixSource):
                prefixes = None
                contributions = source.contributions(snapshot, context, key, sets.rules)
            else:
                contributions = source.contributions_to(
                    snapshot, context, key, sets.rules, prefixes
                )
            name = source.name
            yield from self._collect(snapshot, ref, name, contributions, of_set, rejected, judged)
        except Exception as error:  # noqa: BLE001  one object's error is that object's
            of_set.clear()
            prefixes = None
            self._failed.add(at)
            text = f"it cannot be used: {type(error).__name__}: {error}"
            failure = Problem((ref or self._node,), "", text, dialect=self._dialect.name)
            self._contribution_problems.failed(at, failure, sets.names)
        else:
            self._contribution_problems.contributed(at, sets.names, rejected)
            if not sets.new:
                self._failed.discard(at)
        if ref is None:
            return 0
        if prefixes is None:
            self._judged.note(at, ref.namespace, judged, added=sets.new)
        contributing = self._contributing[source.name]
        before_sets = contributing.get(key, frozenset())
        written = 0
        after_sets = sets.names.intersection(of_set)
        changed_sets = sets.names & before_sets.union(of_set) if before_sets else after_sets
        for name in changed_sets:
            by_prefix = of_set.get(name, {})
            origin = (ref, source.name)
            if prefixes is None:
                written += yield from self._rows.write(txn, name, origin, by_prefix, new=sets.new)
            else:
                written += yield from self._rows.change(txn, name, origin, by_prefix, prefixes)
        if before_sets:
            # Of some prefixes: it may have others in the same sets.
            after_sets |= before_sets - sets.names if prefixes is None else before_sets
        if after_sets:
            contributing[key] = self._same.setdefault(after_sets, after_sets)
        else:
            contributing.pop(key, None)
        return written

    def _collect(
        self,
        snapshot: Snapshot,
        ref: ObjectRef,
        source: str,
        contributions: Iterable[Contributed | Rejected],
        of_set: dict[str, Contributions],
        rejected: dict[str, Rejections],
        judged: dict[bytes, None],
    ) -> Slices[None]:
        """Sort the contributions of one object by set, without the addresses that are rejected."""
        addresses: AddressesOfService | None = None
        rest = iter(contributions)
        while some := list(islice(rest, BATCH_PIECES)):
            for contributed in some:
                name = f"{self._dialect.name}-{contributed.route_set}"
                if isinstance(contributed, Rejected):
                    problem = replace(contributed.problem, dialect=self._dialect.name)
                    rejected.setdefault(name, Rejections(ref)).problems[problem] = None
                    continue
                rank = None
                if contributed.address is not None:
                    if addresses is None:
                        addresses = self._limits.of_object(snapshot, ref)
                    if self._rejects(ref, name, contributed, addresses, rejected, judged):
                        continue
                    if addresses is not None:
                        rank = addresses.rank(contributed.address.nlri)
                given = contributed.contribution
                own = Contribution(given.origin, given.attributes, source, rank)
                parts = of_set.setdefault(name, {}).setdefault(
                    (contributed.family, contributed.nlri), []
                )
                if parts:
                    _add(parts, own)
                else:
                    parts.append(own)
            if self._pieces.fill_slice(len(some)):
                yield

    def _rejects(
        self,
        ref: ObjectRef,
        name: str,
        contribution: Contributed,
        addresses: AddressesOfService | None,
        rejected: dict[str, Rejections],
        judged: dict[bytes, None],
    ) -> bool:
        """True if a set does not get an address that a Service names; it is added to ``rejected``.

        One within the limits is added to ``judged`` either way, as is the IPv4 address within it.
        """
        if contribution.address is None:
            return False
        field, nlri = contribution.address.field, contribution.address.nlri
        beyond = None if addresses is None else self._limits.reject(addresses, nlri)
        if beyond is not None:
            of_set = rejected.setdefault(name, Rejections(ref))
            of_set.add_beyond(beyond, contribution.family, nlri, field)
            return True
        judged[nlri] = None
        if contribution.family == IPV6_UNICAST and (embedded := embedded_ipv4(nlri)) is not None:
            judged[embedded.nlri] = None
        rejection = self._addresses.reject_address(ref, contribution.family, contribution.address)
        if rejection is None:
            rejection = self._addresses.reject_prefix(contribution.family, contribution.nlri)
            if rejection is None:
                return False
            rejection = rejection._replace(objects=(contribution.contribution.origin.rule,))
        of_set = rejected.setdefault(name, Rejections(ref))
        of_set.add(rejection, contribution.family, nlri, field)
        of_set.others.update(dict.fromkeys(rejection.objects))
        return True


def _add(parts: list[Contribution], contribution: Contribution) -> None:
    """Add a contribution of an object to its contributions to one prefix."""
    for place, part in enumerate(parts):
        if (part.origin, part.attributes) == (contribution.origin, contribution.attributes):
            # Several addresses of one aggregate: it has the rank of the first one.
            rank = contribution.rank
            if rank is not None and part.rank is not None and rank < part.rank:
                parts[place] = contribution
            return
    parts.append(contribution)
