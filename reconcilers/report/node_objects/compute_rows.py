"""Computes the objects of a node: small kinds whole, objects of Services one by one.

Level-triggered: `run` compares with what was computed before, and `take` has what differs. A dialect
that fails keeps its last objects. Objects about routed objects are computed where the routes have
changed, in slices of a few milliseconds.
"""

from __future__ import annotations

import functools
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, final

from reconcilers.dialect import (
    Dialect,
    NodeObject,
    NodeObjectContext,
    NodeObjectKey,
    WrittenObjects,
    extended,
)
from reconcilers.dialect.node_object import RunningInstance, key_of
from reconcilers.intent_tables import IntentTables
from reconcilers.model import ObjectRef, Peer, Route
from reconcilers.sliced_work import Slices
from speaker.api import SpeakerPort
from speaker.nlri import Family
from statedb import Change, Database, Snapshot, Table

SLICE_SECONDS: Final = 0.002
"""Of work on objects with routes in one turn of the loop."""

RouteKey = tuple[str, Family, bytes]
Rows = dict[NodeObjectKey, NodeObject]


@final
class NodeObjectRows:
    """The objects that the enabled dialects want for this node."""

    def __init__(
        self,
        database: Database,
        intent: IntentTables,
        dialects: Sequence[Dialect],
        node: str,
        speaker: SpeakerPort,
    ) -> None:
        self._database = database
        self._intent = intent
        self._node = node
        self._speaker = speaker
        self._written = extended(dialects, WrittenObjects)
        self._kinds = {
            kind.kind.name: kind for _, written in self._written for kind in written.kinds
        }
        self._origin_kinds = frozenset[str]().union(
            *(written.origins for _, written in self._written)
        )
        self._routes = intent.routes.changes(database) if self._origin_kinds else None
        self._peers = intent.peers.changes(database) if self._origin_kinds else None
        self._unsent_routes = -1
        """The revision of the table that was followed last."""
        self._seen_peers: dict[tuple[str, str], Hashable] = {}
        self._origins: dict[RouteKey, tuple[ObjectRef, ...]] = {}
        """The routed objects of each route, as the rows before had them."""
        self._route_sets: dict[tuple[Family, bytes], set[str]] = {}
        """The route sets in which a prefix has routed objects."""
        self._changes: deque[Change[Route]] = deque()
        """Changes of routes that have not been followed."""
        if self._routes is not None:
            # From here on the iterator has a log of changes, and does not read the whole table at once.
            self._changes.extend(self._routes.next(database.snapshot()))
        self._pending: set[ObjectRef] = set()
        self._whole: dict[str, Rows] = {}
        """By dialect."""
        self._of_origin: dict[tuple[str, ObjectRef], Rows] = {}
        self._changed: dict[NodeObjectKey, NodeObject | None] = {}
        self.present: Rows = {}
        """All objects that there shall be."""
        self.computed: set[str] = set()
        """The dialects whose objects are known: stored objects of others are not deleted."""
        self.failures: dict[str, Exception] = {}
        """Errors of the last run, by dialect."""

    @property
    def followed(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make the computation of a node's objects due."""
        if not self._written:
            return ()
        i = self._intent
        tables = {t.name: t for dialect, _ in self._written for t in dialect.compiled_tables}
        routes = (i.routes,) if self._origin_kinds else ()
        of_intent = (i.instances, i.peers, i.problems, i.reconcile_statuses, i.unsent_routes)
        return (*tables.values(), *of_intent, i.bfd_sessions, i.kernel_tables, *routes)

    def compute(self) -> Slices[None]:
        """Compute the objects of a node that are due, in slices of a few milliseconds."""
        snapshot = self._database.snapshot()
        self._follow(snapshot)
        self.failures.clear()
        sessions = self._speaker.peers()
        for dialect, written in self._written:
            if self._intent.pending_dialects.get(snapshot, (dialect.name,)) is not None:
                continue
            context = self._context(dialect, sessions)
            try:
                rows = self._keyed(written.of_node(dialect, snapshot, context))
            except Exception as error:  # noqa: BLE001  one dialect's error is that dialect's
                self.failures[dialect.name] = error
                continue
            self._compare(self._whole.get(dialect.name, {}), rows)
            self._whole[dialect.name] = rows
        while self._run_origins(self._database.snapshot()):
            yield
        self.computed |= self._whole.keys() - self.failures.keys()

    def take(self) -> Mapping[NodeObjectKey, NodeObject | None]:
        """Return the computed rows that have changed; None for objects that shall not be."""
        changed, self._changed = self._changed, {}
        return changed

    def _context(self, dialect: Dialect, sessions: Sequence[Any]) -> NodeObjectContext:
        return NodeObjectContext(self._node, dialect.name, self._intent, sessions, self._running)

    def _running(self) -> dict[str, RunningInstance]:
        speaker = self._speaker
        return {
            name: (config, speaker.peer_configs(name))
            for name, config in speaker.instance_configs().items()
        }

    def _run_origins(self, snapshot: Snapshot) -> bool:
        """Follow changes of routes, then compute what they concern; returns True if more is due."""
        if not self._changes and not self._pending:
            return False
        contexts = [
            (dialect, written, self._context(dialect, ()))
            for dialect, written in self._written
            if written.origins
        ]
        end = time.perf_counter() + SLICE_SECONDS
        while (self._changes or self._pending) and time.perf_counter() < end:
            if self._changes:
                change = self._changes.popleft()
                self._follow_route(change.row, deleted=change.deleted)
                continue
            origin = self._pending.pop()
            for dialect, written, context in contexts:
                if origin.kind in written.origins:
                    rows = functools.partial(written.of_origin, dialect, snapshot, context, origin)
                    self._compute(dialect.name, origin, rows)
        return bool(self._changes or self._pending)

    def _compute(
        self, dialect: str, origin: ObjectRef, compute: Callable[[], Iterable[NodeObject]]
    ) -> None:
        try:
            rows = self._keyed(compute())
        except Exception as error:  # noqa: BLE001  one dialect's error is that dialect's
            self.failures[dialect] = error
            return
        key = (dialect, origin)
        self._compare(self._of_origin.pop(key, {}), rows)
        if rows:
            self._of_origin[key] = rows

    def _keyed(self, rows: Iterable[NodeObject]) -> Rows:
        return {key_of(self._kinds[row.kind], row): row for row in rows}

    def _compare(self, before: Rows, rows: Rows) -> None:
        for key in before.keys() - rows.keys():
            self._changed[key] = None
            self.present.pop(key, None)
        for key, row in rows.items():
            if before.get(key) != row:
                self._changed[key] = self.present[key] = row

    def _follow(self, snapshot: Snapshot) -> None:
        """Note the routed objects whose routes, or whose peers, have changed."""
        if self._routes is None or self._peers is None:
            return
        self._changes.extend(self._routes.next(snapshot))
        revision = self._intent.unsent_routes.revision(snapshot)
        all_due = revision != self._unsent_routes
        self._unsent_routes = revision
        for peer in self._peers.next(snapshot):
            key = (peer.row.instance, peer.row.name)
            before = self._seen_peers.pop(key, None)
            now = None if peer.deleted else _export_settings(peer.row)
            if now is not None:
                self._seen_peers[key] = now
            all_due = all_due or before != now
        if all_due:
            self._pending.update(ref for refs in self._origins.values() for ref in refs)

    def _follow_route(self, row: Route, *, deleted: bool) -> None:
        key = (row.route_set, row.family, row.nlri)
        origins = dict.fromkeys(c.origin.object for c in row.contributions)
        refs = tuple(ref for ref in origins if ref.kind in self._origin_kinds)
        self._pending.update(refs, self._origins.pop(key, ()))
        prefix = (row.family, row.nlri)
        route_sets = self._route_sets.pop(prefix, set()) - {row.route_set}
        # A prefix has the peers of all its routes, also of a route of other objects.
        for route_set in route_sets:
            self._pending.update(self._origins[route_set, *prefix])
        if refs and not deleted:
            self._origins[key] = refs
            route_sets.add(row.route_set)
        if route_sets:
            self._route_sets[prefix] = route_sets


def _export_settings(peer: Peer) -> Hashable:
    """Return what decides which routes are advertised to a peer."""
    return (peer.route_set, peer.families, peer.suppressed, peer.origins)
