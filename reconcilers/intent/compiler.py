"""The intent compiler: compiles the changes since its last run to the neutral intent.

A change of a dialect's tables compiles that dialect and the dialects that it feeds. A changed object of
a route source contributes to the route sets again; only a new route set is filled by all objects. The
rows that differ are written in one transaction, so that a change of a table is a change of the intent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace
from opentelemetry import trace

from reconcilers.dialect import Dialect, Feeding, NodeContext, NodeIntent, Rendering, extended
from reconcilers.intent.address_limits import AddressLimits
from reconcilers.intent.arbitrate import Owners
from reconcilers.intent.dialect_intents import DialectIntents
from reconcilers.intent.dialect_readings import DialectReadings, Reading
from reconcilers.intent.dialect_route_sets import DialectRouteSets
from reconcilers.intent.explain import Explainer
from reconcilers.intent.host_needs import HostDemand
from reconcilers.intent.kernel_readings import KernelReadings
from reconcilers.intent.missing_bfd import missing_bfd
from reconcilers.intent.node_configuration import NodeConfiguration
from reconcilers.intent.object_problems import ObjectProblems
from reconcilers.intent.options import IntentOptions
from reconcilers.intent.peer_limits import PeerLimits
from reconcilers.intent.service_addresses import AddressRules, AddressRulesTracker
from reconcilers.intent.session_addresses import forget_session_addresses
from reconcilers.intent.summary import Summary
from reconcilers.intent.unsent_routes import unsent_problems
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Peer, PendingDialect, Problem
from reconcilers.round_span import round_span
from reconcilers.sliced_work import Pieces, Slices, finish
from resources.core import Node
from resources.host.network import Host
from resources.tables import Tables
from resources.trace_links import TraceLinks
from speaker.nlri import Family, prefix_to_text
from statedb import Database, Revisions, Snapshot, Table, WriteTxn

_tracer = trace.get_tracer("waggle.reconcilers")
NONE: Final[frozenset[str]] = frozenset()
MAX_PREFIXES: Final = 32
"""Changed prefixes that the span of a round has."""


class IntentCompiler:
    """Compiles the resource tables to the intent tables; `run` does what is due."""

    def __init__(
        self,
        db: Database,
        resources: Tables,
        intent: IntentTables,
        dialects: Sequence[Dialect],
        node: str,
        *,
        secrets_namespace: str = "kube-system",
        options: IntentOptions = IntentOptions(),  # noqa: B008  frozen
        owners: Owners | None = None,
        states: Mapping[str, Any] = MappingProxyType({}),
        operator_in_process: bool = False,
        installing: Collection[str] = (),
        host_demand: HostDemand | None = None,
        trace_links: TraceLinks | None = None,
        bfd_off: str = "",
        api_hosts: Callable[[], Iterable[str]] = tuple,
        on_error: Callable[[str, Exception], None] = lambda _dialect, _error: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``owners`` are the claims of an earlier process (`reconcilers.intent.arbitrate`).

        ``states`` belong to dialects, of an earlier process (`StoredState.restore`) or compiler.
        ``installing`` are the names of dialects whose peers' routes are installed in the kernel.
        ``bfd_off`` is why this node has no BFD sessions; a problem of each peer that shall have one.
        ``api_hosts`` returns the addresses by which this agent reaches the Kubernetes API.
        ``on_error`` takes the name of a dialect that cannot be compiled, and the error; it is a
        problem as well. ``clock`` is monotonic, in seconds.
        """
        self._db = db
        self._resources = resources
        self._intent = intent
        self._feeding = Feeding(dialects, installing)
        self._dialects = self._feeding.dialects
        self._context = NodeContext(
            node, secrets_namespace, operator_in_process=operator_in_process
        )
        self._trace_links = trace_links or TraceLinks()
        self._bfd_off = bfd_off
        self._on_error = on_error
        self._intents = DialectIntents(resources, intent, self._feeding, on_error, states)
        self._node: Node | None = None
        """As of the last run: draining depends on its taints."""
        self._pieces = Pieces()
        self._addresses = AddressRulesTracker(
            db,
            resources,
            intent,
            tuple(self._dialects.values()),
            node,
            options,
            self._pieces,
            on_error,
            api_hosts,
        )
        self._limits = AddressLimits(db, resources.services, options)
        self._object_problems = ObjectProblems(resources.kinds)
        self._peer_limits = PeerLimits(intent, options, node, self._pieces)
        self._configuration = NodeConfiguration(
            resources, intent, options, owners or {}, self._peer_limits, self._pieces
        )
        self._last: Revisions | None = None
        """Of the tables at the last run: tables that have changed since decide what is due."""
        self._waited: Revisions | None = None
        """The same, while rounds wait for the first readings and nothing is compiled."""
        self._readings = DialectReadings(
            (*resources.resources, resources.gateways),
            {
                name: frozenset(resources.of(kind) for kind in dialect.kinds if kind.custom)
                for name, dialect in self._dialects.items()
            },
            self._feeding,
            clock,
        )
        self._kernel = KernelReadings(self._feeding, node, clock)
        self._held: AbstractSet[str] = frozenset()
        """Compiled dialects without effect until the routes that they redistribute are read."""
        self._in_effect: set[str] = set()
        self._effective: Mapping[str, NodeIntent] = self._intents.compiled
        """The intents of the dialects that are not held."""
        self._kernel_problems: tuple[Problem, ...] = ()
        self._pending: tuple[PendingDialect, ...] = ()
        self._peers_changed = False
        """Whether peers were written since rows of former sessions were deleted."""
        self._host_demand = host_demand or HostDemand(
            resources, tuple(self._dialects.values()), node
        )
        self._changed_prefixes: dict[tuple[Family, bytes], None] | None = None
        """The first ones of a round whose span is recorded."""
        sources = self._feeding.route_sources
        self._route_sets = {
            name: DialectRouteSets(
                db,
                intent,
                dialect,
                node,
                sources(dialect),
                self._pieces,
                self._limits,
                self._object_problems,
                self._note_route,
            )
            for name, dialect in self._dialects.items()
        }

    def _note_route(self, route_set: str, family: Family, nlri: bytes) -> None:
        if self._peer_limits.limited:
            self._peer_limits.note(route_set, family, nlri)
        prefixes = self._changed_prefixes
        if prefixes is not None and len(prefixes) < MAX_PREFIXES:
            prefixes[family, nlri] = None

    @property
    def followed(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make a run of the intent compiler due.

        Without `IntentTables.generated` and `deletions`: the compiler writes them, and the operator's
        part in this process, which has run before it in the same round.
        """
        tables: dict[str, Table[Any]] = {
            table.name: table
            for dialect in self._dialects.values()
            for table in (
                *dialect.compiled_tables,
                *(self._resources.of(kind) for kind in dialect.kinds),
                *(table for source in dialect.sources for table in source.tables),
            )
        }
        resources = self._resources
        intent = self._intent
        shared: tuple[Table[Any], ...] = (
            *self._intents.shared,
            resources.kernel_routes,
            resources.nodes,
            intent.unsent_routes,
            intent.bfd_sessions,
            intent.learned_limits,
            *self._addresses.followed,
        )
        return tuple({**tables, **{table.name: table for table in shared}}.values())

    def run(self) -> Summary:
        """Compile the intent that is due, at one go."""
        return finish(self.slices())

    def slices(self) -> Slices[Summary]:
        """Compile the due intent in slices; the rows change at the end, all at once.

        Nothing else writes to the tables of the intent meanwhile, but for `reconcile_statuses`,
        `session_addresses`, `unsent_routes`, `bfd_sessions` and `learned_limits`.
        """
        snapshot = self._db.snapshot()
        reading = self._readings.reading(snapshot)
        waiting_for = tuple([table.name for table in reading.unread]) if reading.unread else ()
        changed = self._db.changed(self._last, snapshot)
        host, needing, demand = self._resources.host, NONE, self._host_demand
        if not demand.host_read:
            since = changed if self._last is not None else self._changed_while_waiting(snapshot)
            if demand.needed or not since.isdisjoint(demand.followed):
                needing = demand.unread(snapshot, since, self._on_error)
        if waiting_for and not reading.ready:
            of_host = (host.name,) if needing else ()
            return Summary(ready=False, waiting_for=(*waiting_for, *of_host), retry=reading.retry)
        waiting = NONE
        if needing or self._kernel.waiting or self._kernel_problems:
            waiting = self._kernel.dialects_waiting(snapshot, host, needing & reading.ready)
        if waiting and not self._in_effect:
            return self._kernel_unread(waiting_for)
        contexts, _ = self._trace_links.take()
        with round_span(_tracer, "intent.round", contexts) as span:
            self._changed_prefixes = {} if span.is_recording() else None
            summary = yield from self._run(
                snapshot, changed, reading, reading.ready - waiting if waiting else reading.ready
            )
            if not summary.ready:
                return summary
            self._last = snapshot.revisions
            if span.is_recording():
                span.set_attribute("waggle.configuration", bool(summary.dialects))
                span.set_attribute("waggle.dialects", list(summary.dialects))
                span.set_attribute("waggle.object_count", summary.objects)
                span.set_attribute("waggle.route_count", summary.routes)
                prefixes = self._changed_prefixes or {}
                span.set_attribute("waggle.prefixes", [prefix_to_text(*key) for key in prefixes])
        if self._kernel.waiting:
            waiting_for = (*waiting_for, *self._kernel.unread)
            summary = replace(summary, retry=self._kernel.retry)
        return replace(summary, waiting_for=waiting_for, span=span.get_span_context())

    def _changed_while_waiting(self, snapshot: Snapshot) -> frozenset[Table[Any]]:
        """Return the tables changed since the last call; until the first round is complete."""
        since, self._waited = self._waited, snapshot.revisions
        return self._db.changed(since, snapshot)

    def _kernel_unread(self, waiting_for: tuple[str, ...]) -> Summary:
        """At a start all dialects are compiled together: nothing is in effect meanwhile."""
        names = (*waiting_for, *self._kernel.unread)
        return Summary(ready=False, waiting_for=names, retry=self._kernel.retry)

    def _hold(self, snapshot: Snapshot, compiled: tuple[str, ...]) -> tuple[str, ...]:
        """Find the dialects that wait for routes; return dialects to write, released ones included."""
        intents, before = self._intents.compiled, self._held
        needing = [name for name in intents if intents[name].kernel_tables]
        needing = needing if self._host_demand.kernel_tables else []
        routes = self._resources.kernel_routes
        self._held = self._kernel.dialects_waiting(snapshot, routes, needing, self._in_effect)
        held = self._held
        self._effective = {n: intents[n] for n in intents if n not in held} if held else intents
        due = {*compiled, *before} - held
        return tuple([name for name in self._dialects if name in due])

    def _present_context(self, snapshot: Snapshot, changed: AbstractSet[Table[Any]]) -> NodeContext:
        tables = self._resources
        if changed.isdisjoint((tables.host, tables.kernel_routes, tables.node_networks)):
            return self._context
        return replace(self._context, host=self._host(snapshot))

    def _host(self, snapshot: Snapshot) -> Host:
        tables = self._resources
        described = tables.node_networks.get(snapshot, ("", self._context.node))
        if described is not None:
            return described.host
        host = next(tables.host.all(snapshot), None) or Host()
        routes = tuple(tables.kernel_routes.all(snapshot))
        return replace(host, routes=routes) if routes else host

    def _run(
        self,
        snapshot: Snapshot,
        changed: frozenset[Table[Any]],
        reading: Reading,
        ready: AbstractSet[str],
    ) -> Slices[Summary]:
        context = self._context = self._present_context(snapshot, changed)
        self._pieces.begin()
        full = self._pieces.slices
        compiled = yield from self._intents.compile(snapshot, context, changed, ready)
        for name in compiled:
            self._route_sets[name].recompiled(self._intents.compiled[name].recompiled)
        if compiled:
            needed = map(attrgetter("kernel_tables"), self._intents.compiled.values())
            self._host_demand.redistribute(snapshot, frozenset().union(*needed))
        if self._host_demand.kernel_tables or self._held or self._kernel_problems:
            compiled = self._hold(snapshot, compiled)
            if self._held and not self._in_effect:
                return self._kernel_unread(())
        self._in_effect.update(compiled)
        intent = self._intent
        judged_again = yield from self._limits.collect(snapshot, self._pieces)
        for route_sets in self._route_sets.values():
            yield from route_sets.collect(snapshot)
            route_sets.judge_again(judged_again)
        node = self._resources.nodes.get(snapshot, ("", context.node))
        before, self._pending = (
            self._pending,
            self._readings.pending(self._dialects, reading, self._kernel.waiting)
            if reading.unread or self._kernel.waiting
            else (),
        )
        configuration = (
            bool(compiled)
            or node != self._node
            or intent.learned_limits in changed
            or before != self._pending
            or self._kernel_problems != self._kernel.problems
        )
        self._node = node
        judged = yield from self._addresses.read(snapshot, changed, compiled)
        if judged and not configuration:
            self._set_address_rules(snapshot, intent.peers.all(snapshot))
        problems = not changed.isdisjoint((intent.unsent_routes, intent.bfd_sessions))
        problems |= self._addresses.take_problems()
        pending = [sets for sets in self._route_sets.values() if sets.pending]
        if not (configuration or problems or pending):
            self._forget_former_sessions(changed)
            return Summary(ready=True)
        objects = written = 0
        with self._db.write(*intent.compiled) as txn:
            if configuration:
                problems |= yield from self._write_configuration(txn, snapshot)
                yield from self._peer_limits.replace_sets(txn)
            for name, route_sets in self._route_sets.items():
                if name in compiled:
                    written += yield from route_sets.replace(
                        txn, self._intents.compiled[name].route_sets
                    )
                counted = yield from route_sets.contribute(txn, snapshot, context)
                objects += counted.objects
                written += counted.routes
            if self._pieces.slices > full:
                yield
            of_parts = [sets.take_problems() for sets in self._route_sets.values()]
            written += yield from self._peer_limits.write(txn)
            of_parts.append(self._peer_limits.take_problems())
            if problems or any(of_parts):
                self._write_problems(txn)
        self._forget_former_sessions(changed)
        return Summary(ready=True, dialects=compiled, objects=objects, routes=written)

    def _forget_former_sessions(self, changed: AbstractSet[Table[Any]]) -> None:
        """Delete the rows of sessions whose peers have gone; a restart may restore some late."""
        if self._pending:
            return
        of_sessions = (self._intent.session_addresses, self._intent.next_hops)
        if self._peers_changed or not changed.isdisjoint(of_sessions):
            forget_session_addresses(self._db, self._intent)
        self._peers_changed = False

    # Configuration

    def _write_configuration(self, txn: WriteTxn, snapshot: Snapshot) -> Slices[bool]:
        """Write the configuration; return whether there are other problems, or may be."""
        self._kernel_problems = self._kernel.problems
        compiled = yield from self._configuration.compile(
            snapshot,
            self._effective,
            self._context,
            self._node,
            pending=self._pending,
            problems=(*self._kernel_problems, *self._intents.failures.values()),
        )
        self._set_address_rules(snapshot, compiled.arbitrated)
        written = yield from self._configuration.write(txn, snapshot, compiled)
        self._peers_changed |= written.peers
        return written.problems

    def _set_address_rules(self, snapshot: Snapshot, peers: Iterable[Peer]) -> None:
        addresses = [
            text for dialect_intent in self._effective.values() for text in dialect_intent.addresses
        ]
        changes = self._addresses.update(snapshot, self._node, peers, addresses)
        for route_sets in self._route_sets.values():
            route_sets.set_address_rules(self._addresses.rules, changes)

    def _write_problems(self, txn: WriteTxn) -> None:
        intent = self._intent
        of_sets = [p for sets in self._route_sets.values() for p in sets.problems]
        rows = [
            *self._configuration.problems,
            *self._addresses.problems,
            *self._peer_limits.problems,
            *of_sets,
            *self._object_problems.rows(),
            *unsent_problems(intent, txn),
            *missing_bfd(intent, txn, self._bfd_off),
        ]
        intent.replace(txn, IntentTables.problems, rows)

    # Reads

    @property
    def owners(self) -> Owners:
        """The dialect that has each claim, for the compiler of the next process."""
        return self._configuration.owners

    @property
    def states(self) -> Mapping[str, Any]:
        """The compiler's memory of each dialect (`reconcilers.dialect.NodeContext.state`)."""
        return self._intents.states

    def rendered(self) -> Iterator[dict[str, Any]]:
        """Yield the objects that dialects add to ``waggle render``, from the compiler."""
        snapshot = self._db.snapshot()
        for dialect, rendering in extended(self._dialects.values(), Rendering):
            context = self._feeding.node_context(dialect, self._context, self._intents.compiled)
            context = replace(context, state=self.states.get(dialect.name))
            yield from rendering.objects(dialect, snapshot, context, self._intent)

    @property
    def address_rules(self) -> AddressRules:
        """The rules for addresses of Services, as of the compiler's last run."""
        return self._addresses.rules

    def explainer(self) -> Explainer:
        """Return what explains the intent, as of the compiler's last run."""
        snapshot = self._db.snapshot()
        context = replace(self._context, host=self._host(snapshot))
        return Explainer(
            snapshot,
            self._resources,
            self._intent,
            context,
            self._feeding,
            {name: route_sets.rules for name, route_sets in self._route_sets.items()},
            self._addresses.rules,
            self._limits,
            self.states,
        )
