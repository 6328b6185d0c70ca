"""Reconciles the routing tables of the kernel: received routes that belong into them.

Objects are the tables, one per family; their parts are the routes. Best paths come as streams, not in a
table of StateDB; what the kernel holds is what the writer has confirmed. Operations hand changes to the
writer and return.

Routes that an earlier process installed are kept until it is known which of them are still there: until
route selection is complete, and the peers that routes are accepted from are Established, or
`DEFERRAL_SECONDS` have passed (RFC 4724 section 4.2).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import islice
from typing import Final, final

from opentelemetry import trace
from reactivex import Observable
from reactivex.subject import Subject

from reconcilers.intent_tables import IntentTables
from reconcilers.kernel.default_route import default_route_names
from reconcilers.kernel.installed import InstalledRoutes
from reconcilers.kernel.instance_routes import PENDING
from reconcilers.kernel.next_hop_metrics import Metrics
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.resolution import Moves, moves_of_earlier_routes
from reconcilers.kernel.resolved_next_hops import TrackedRouting
from reconcilers.kernel.routing import DEFAULT_VRF
from reconcilers.kernel.tracked_next_hops import TrackedNextHops
from reconcilers.kernel.wanted_tables import FAMILIES, InstanceTable, WantedTables
from reconcilers.kernel.withheld_routes import WithheldRoutes
from reconcilers.kernel.writer.port import KernelWriter
from reconcilers.kernel.writer.protocol_messages import IPV6, Resolved, RouteTable, Settings
from reconcilers.model import Instance, NextHops, ObjectRef, Route
from reconcilers.sliced_work import Slices
from reconcilers.target.comparison import difference
from reconcilers.target.reconciler import (
    Description,
    ObjectKey,
    Parts,
    ReconcileError,
    Reconciler,
    State,
)
from resources.host import Host
from resources.trace_links import TraceLinks
from speaker.api import BestPathItem, PathSet
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, prefix_to_text
from statedb import ChangeIterator, Database, Snapshot

READ_SECONDS: Final = 10.0
"""For the writer to read all tables."""
_KERNEL_FAMILIES: Final = {str(family): kind for kind, family in FAMILIES.items()}


@final
class KernelReconciler(Reconciler):
    """Objects are ``(table, family, metric)`` as text, parts prefixes, values `NextHopSet`."""

    def __init__(
        self,
        database: Database,
        intent: IntentTables,
        writer: KernelWriter,
        options: FibOptions,
        installs: Callable[[Instance], bool],
        clock: Callable[[], float] = time.monotonic,
        causes: TraceLinks | None = None,
    ) -> None:
        """``installs``: whether the received routes of an instance belong into the kernel.

        ``causes`` gets the spans that cause the next round.
        """
        self.causes = causes or TraceLinks()
        self._unresolved = TraceLinks()
        """The spans of rounds that wait until the kernel has looked up next hops."""
        self._changes: Subject[object] = Subject()
        self._due: Subject[object] = Subject()
        self.description = Description(
            name="kernel-routes",
            order=50,
            tables=("instances", "peers", "routes"),
            target="kernel",
            summary="routing tables of the kernel: received routes",
            stream=self._due,
        )
        self._database = database
        self._intent = intent
        self._options = options
        self._installs = installs
        self.routing = TrackedRouting(options.table)
        self._tracked = TrackedNextHops(self.routing, writer)
        self._configured: tuple[object, ...] = ()
        self._routes: ChangeIterator[Route] | None = None
        """Followed from the first instance on: an agent may have very many routes."""
        self._own_revision: int | None = None
        """Of `_routes`, up to which the prefixes of this node are known."""
        self._deferred = True
        self._stale: dict[RouteTable, set[bytes]] | None = None
        """Routes of an earlier process that no peer has announced yet; None before they are known."""
        self.compared = False
        """Whether a round compared the kernel with the intent: before it is compiled none does."""
        self.metrics_due: Subject[None] = Subject()
        """Emits when the metrics of received next hops may be others: `select`."""
        self.withheld = WithheldRoutes(self._wake)
        self._whole = False
        """Whether all tables are to be compared."""
        settings = Settings(options.protocol, options.keep)
        self.installed = InstalledRoutes(
            writer, settings, self._wake, self._resolved, self._tracked.send_again, clock
        )
        self.wanted_tables = WantedTables(self.routing, options, self._move, self._tracked.send)

    # -------------------------------------------------------------- from outside

    @property
    def changed(self) -> Observable[object]:
        """Emits when routes that are wanted or installed have changed, or may be reconciled."""
        return self._changes

    def _wake(self) -> None:
        self._due.on_next(None)
        self._changes.on_next(None)

    def origins(self, paths: PathSet) -> tuple[ObjectRef, ...]:
        """Return the objects that configure the peers of best paths, to reconcile their routes."""
        snapshot, peers = self._database.snapshot(), self._intent.peers
        keys = ((path.instance, path.peer) for path in paths.paths if path.peer is not None)
        rows = (peers.get(snapshot, key) for key in keys)
        return tuple(dict.fromkeys(o for row in rows if row is not None for o in row.origins))

    def best_paths(
        self,
        instance: str,
        items: Iterable[BestPathItem],
        urgent: Sequence[BestPathItem] = (),
    ) -> bool:
        """Follow the best paths of an instance, to reconcile the kernel's routes with them.

        ``urgent`` are the last ones, of few prefixes: what they change is handed to the writer at once,
        unless the prefixes that this node advertises are not known. Returns whether a round follows,
        for all others: a round for each single change would keep the processor from the writer.
        """
        self.wanted_tables.apply(instance, items)
        self._tracked.send()
        if urgent and self._stale is not None and self.installed.listed and self._knows_own:
            for table, prefixes in self.wanted_tables.single_changes(instance, urgent).items():
                self._reconcile_at_once(table, prefixes)
        if self.wanted_tables.has_changed:
            self._wake()
            return True
        self._changes.on_next(None)
        return False

    def _reconcile_at_once(self, table: RouteTable, prefixes: Sequence[bytes]) -> None:
        # What has failed is the business of the round, which reports it.
        has_failed = any(self.installed.failures.get(table, nlri) for nlri in prefixes)
        changes = difference(self._desired(table, prefixes), self.installed.held(table, prefixes))
        if due := self.installed.without_failed(table, changes):
            self._change(table, due, urgent=True)
        if not has_failed:
            self.wanted_tables.reconciled(table, prefixes)

    def host_changed(self, host: Host | None) -> None:
        """Follow the interfaces, addresses and VRFs of the host, to reconcile the kernel's routes."""
        self.routing.set_host(host)
        self._resolve(networks=True)

    def select(self, rows: Iterable[NextHops]) -> Slices[Metrics]:
        """Look the next hops of all received routes up, beside the next hops to reconcile.

        Returns their metrics for route selection; no work of the reconciler.
        """
        metrics = yield from self._tracked.select(rows, self.wanted_tables.vrfs)
        self._tracked.send()
        return metrics

    def session_lost(self, instance: str, peer: str) -> None:
        """Reconcile the routes of a peer that are being withdrawn: it is removed from all next hops."""
        self.wanted_tables.session_lost(instance, peer)
        self._wake()

    def session_restored(self, instance: str, peer: str) -> None:
        """Reconcile the routes of a peer again, whose session is back."""
        self.wanted_tables.session_restored(instance, peer)
        self._wake()

    def end_deferral(self) -> None:
        """Remove the routes of an earlier process that the reconciler does not want."""
        if self._deferred:
            self._deferred = False
            self._stale = {}
            self._wake_whole()

    @property
    def deferred(self) -> bool:
        """Whether the reconciler keeps routes of an earlier process that no peer has announced yet."""
        return self._deferred

    def _wake_whole(self) -> None:
        self._whole = True
        self._wake()

    def _move(self, moves: Moves) -> None:
        if self._deferred:
            is_announced = self._stale is not None and not any(self._stale.values())
            moves = moves_of_earlier_routes(moves, remove=is_announced)
        if moves:
            self.installed.move(moves)

    def _resolved(self, message: Resolved) -> None:
        self._tracked.resolved(message.resolutions)
        self.causes.add(self._unresolved.take()[0])
        self._resolve(networks=False)

    def _resolve(self, *, networks: bool) -> None:
        self.wanted_tables.host_changed(networks=networks)
        self._tracked.send()
        self.metrics_due.on_next(None)
        self._wake()

    # ------------------------------------------------------------ the reconciler

    def changes(self, snapshot: Snapshot) -> Slices[Mapping[ObjectKey, Parts]]:
        """Return the kernel's tables to reconcile, with the prefixes that may not be as desired."""
        self.configure(snapshot)
        yield from self._follow_own(snapshot)
        self.compared = True
        if not self.installed.listed:
            return {}
        if self._stale is None:
            self._stale = {t: set(self.installed.prefixes(t)) for t in self.installed.tables}
        yield from self.wanted_tables.find_refreshed()
        yield from self.installed.settle_moves()
        if self.wanted_tables.has_refreshed:
            # Since then: of a class whose routes are looked for all are compared in a later round.
            yield from self.wanted_tables.find_refreshed()
        # What the writer does not take yet waits where peers share its time.
        has_room = self.installed.has_room
        changed = self.wanted_tables.take_changed(only_few=not has_room)
        if has_room and self.wanted_tables.has_changed:
            self._wake()
        if self._whole:
            self._whole = False
            changed.update(dict.fromkeys((*self.wanted_tables.tables, *self.installed.tables)))
        for changes in (self.installed.take_changed(), self.withheld.take_changed()):
            for table, parts in changes.items():
                known = changed.setdefault(table, {})
                if parts is None or known is None:
                    changed[table] = None
                else:
                    known.update(dict.fromkeys(parts))
        return {_key(table): parts for table, parts in changed.items()}

    def _follow_own(self, snapshot: Snapshot) -> Slices[None]:
        """Follow the prefixes that this node advertises, of which there may be very many."""
        if self._routes is None:
            if not self.wanted_tables.instances:
                return
            self._routes = self._intent.routes.changes(self._database)
        own = self.wanted_tables.own
        for number, changes in enumerate(self._routes.slices(snapshot)):
            if number:
                yield
            self.wanted_tables.own_changed(
                own.change((change.row, not change.deleted) for change in changes)
            )
        self._own_revision = self._intent.routes.revision(snapshot)

    @property
    def _knows_own(self) -> bool:
        """Whether all prefixes that this node advertises now are known."""
        return self._own_revision == self._intent.routes.revision(self._database.snapshot())

    def configure(self, snapshot: Snapshot) -> None:
        """Follow the instances of the intent, whose best paths are reconciled with the kernel."""
        tables = self._intent
        revisions = (tables.instances.revision(snapshot), tables.peers.revision(snapshot))
        if revisions == self._configured:
            return
        self._configured = revisions
        rows = list(tables.instances.all(snapshot))
        peers = list(tables.peers.all(snapshot))
        self.wanted_tables.own_changed(self.wanted_tables.own.configure(rows, peers))
        names = default_route_names(peers, everywhere=self._options.default_route)
        self.wanted_tables.configure(
            [
                InstanceTable(row.name, row.vrf or DEFAULT_VRF)
                for row in rows
                if self._installs(row)
            ],
            {row.name: row.vrf or DEFAULT_VRF for row in rows},
            names,
        )
        self._tracked.send()
        self.metrics_due.on_next(None)

    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        """Return the kernel's tables to reconcile; none before the writer has listed the routes."""
        del snapshot
        if not self.installed.listed:
            return ()
        return [_key(table) for table in self.wanted_tables.tables]

    def actual_objects(self) -> Iterable[ObjectKey]:
        """Return the kernel's tables that have routes of ours, to reconcile or to prune."""
        return [_key(table) for table in self.installed.tables]

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        """True if a table of the kernel is to be reconciled: an instance has it, or routes are kept."""
        del snapshot
        table = _table(key)
        return table in self.wanted_tables.tables or (
            self._deferred and bool(self.installed.count(table))
        )

    def desired(self, snapshot: Snapshot, key: ObjectKey, parts: Parts) -> State:
        """Return the desired next hops of prefixes in a kernel's table."""
        del snapshot
        table = _table(key)
        prefixes = list(self.wanted_tables.prefixes(table)) if parts is None else list(parts)
        return self._desired(table, prefixes)

    def _desired(self, table: RouteTable, prefixes: Sequence[bytes]) -> State:
        wanted = self.wanted_tables.next_hops(table, prefixes)
        self.installed.forget_failures(table, (nlri for nlri in prefixes if nlri not in wanted))
        withheld = self.withheld.routes(table)
        for without in (self.installed.failures.occupied(table), withheld):
            if without:
                wanted = {nlri: hops for nlri, hops in wanted.items() if nlri not in without}
        if PENDING in wanted.values():
            pending = [nlri for nlri, hops in wanted.items() if hops is PENDING]
            self._unresolved.add([trace.get_current_span().get_span_context()])
            for nlri in pending:
                del wanted[nlri]
            wanted.update(self.installed.held(table, pending))
        if stale := (self._stale or {}).get(table):
            # What no peer has announced yet may be announced once all peers are there.
            stale.difference_update(wanted)
            kept = [nlri for nlri in prefixes if nlri in stale and nlri not in withheld]
            return self.installed.held(table, kept) | wanted
        return wanted

    def actual(self, key: ObjectKey, parts: Parts) -> State | None:
        """Return the actual next hops of prefixes in a kernel's table; None without the table."""
        table = _table(key)
        if table not in self.installed.tables and table not in self.wanted_tables.tables:
            self.installed.forget_failures(table, self.installed.failures.prefixes(table))
            return None
        return self.installed.held(
            table, self.installed.prefixes(table) if parts is None else parts
        )

    def update(self, key: ObjectKey, changes: State) -> None:
        """Reconcile routes of a kernel's table. Raises `ReconcileError` for routes it did not take.

        All other routes are sent.
        """
        table = _table(key)
        due = self.installed.without_failed(table, changes)
        if due:
            self._change(table, due)
        if len(due) < len(changes):
            failed = [nlri for nlri in changes if nlri not in due]
            raise ReconcileError(self.installed.failures.error(table), parts=failed)

    def _change(self, table: RouteTable, due: State, *, urgent: bool = False) -> None:
        self.installed.change(table, due, urgent=urgent)
        if self._options.check:
            self.withheld.installed(table, due)

    def delete(self, key: ObjectKey) -> None:
        """Prune a table of the kernel: remove all our routes from it."""
        table = _table(key)
        self.installed.forget_failures(table, self.installed.failures.prefixes(table))
        self.installed.change(table, dict.fromkeys(self.installed.prefixes(table)))

    def pieces(self, snapshot: Snapshot, key: ObjectKey, size: int) -> Iterator[Collection[bytes]]:
        """Iterate over the prefixes of a kernel's table to reconcile, except for changed ones."""
        del snapshot
        table, settled = _table(key), self.wanted_tables.settled
        wanted = dict.fromkeys(self.wanted_tables.prefixes(table))
        failed = self.installed.failures.prefixes(table)
        self.installed.forget_failures(table, (nlri for nlri in failed if nlri not in wanted))
        rest = iter(wanted)
        yield settled(table, list(islice(rest, size)))
        while piece := list(islice(rest, size)):
            yield settled(table, piece)
        others = (nlri for nlri in self.installed.prefixes(table) if nlri not in wanted)
        while piece := list(islice(others, size)):
            yield settled(table, piece)

    @contextlib.asynccontextmanager
    async def read_again(self) -> AsyncIterator[None]:
        """Read the kernel's routes again for a verification. Raises `ReconcileError`."""
        if not self.installed.listed:
            raise ReconcileError("the writer of kernel routes does not answer")
        done = asyncio.Event()
        self.installed.read(done.set)
        try:
            try:
                async with asyncio.timeout(READ_SECONDS):
                    await done.wait()
            except TimeoutError:
                raise ReconcileError("the writer of kernel routes does not answer") from None
            yield
        finally:
            self.installed.end_reading()

    def text(self, part: bytes) -> str:
        """Return a reconciled prefix as text; an IPv4 and an IPv6 prefix may be the same octets."""
        is_ipv6 = any(
            table.family == IPV6 and (self.installed.held(table, (part,)) or part in wanted)
            for table in (*self.wanted_tables.tables, *self.installed.tables)
            for wanted in (self.wanted_tables.next_hops(table, (part,)),)
        )
        return prefix_to_text(IPV6_UNICAST if is_ipv6 else IPV4_UNICAST, part)


def _key(table: RouteTable) -> ObjectKey:
    return (str(table.table), str(FAMILIES[table.family]), str(table.metric))


def _table(key: ObjectKey) -> RouteTable:
    number, family, metric = key
    return RouteTable(int(number), _KERNEL_FAMILIES[family], int(metric))
