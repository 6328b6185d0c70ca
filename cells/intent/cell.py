"""The intent cell: objects compiled to the neutral intent, one round for each burst of changes.

A round runs in one turn of the loop; with thousands of changed prefixes in slices, between which
sessions go on, and its rows change all at once. What cannot be compiled is reported as a problem, and
the rest goes on. Where the operator's part runs in this process, it is the first step of a round.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Final, Protocol

import structlog
from prometheus_client.core import GaugeMetricFamily
from reactivex import Observable
from reactivex.subject import Subject

from cells.hive import Group, Health, Readiness, Wiring, provide
from cells.hive.jobs import Jobs
from cells.hive.rounds import in_slices, run_rounds
from cells.hive.signal import Signal
from cells.intent.installing_dialects import InstallingDialects, installing
from cells.intent.problem_log import ProblemLog
from cells.observability.metrics import Metrics, MetricsCollector
from cells.sources.resources import (
    ApiServers,
    ApplyTraceLinks,
    EventTraceLinks,
    SecretsNamespace,
)
from cells.state.claims import ClaimStore
from cells.state.dialect_states import DialectStates
from cells.state.node import ThisNode
from reconcilers.dialect import Dialect
from reconcilers.intent import drain
from reconcilers.intent.compiler import IntentCompiler
from reconcilers.intent.explain import Explainer
from reconcilers.intent.host_needs import HostDemand
from reconcilers.intent.missing_bfd import WITHOUT_BFD
from reconcilers.intent.options import IntentOptions
from reconcilers.intent.service_addresses import unrestricted
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Problem
from reconcilers.sliced_work import Slices
from resources.core.kinds import CONFIG_MAP
from resources.enumeration import first_of
from resources.source import SourceProblem
from resources.tables import Tables
from statedb import Database, Snapshot, Table

SETTLE_TURNS = 3
"""Turns of the loop in which further commits join a round: microseconds, not a delay."""

OTHER_NODES_UNKNOWN: Final = (
    "addresses of other Nodes, their Pods and their peers are not known, and advertised for Services: "
    "no operator publishes them (--cluster-addresses-namespace)"
)

log = structlog.get_logger("waggle.intent")
PROBLEMS: Final = ProblemLog(log, "intent.problem", "intent.solved")


class IntentStep(Protocol):
    """A step before the compilation of the intent, in the same round: the operator's part."""

    @property
    def followed(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make a round due."""
        ...

    def slices(self) -> Slices[None]:
        """Write the rows that the compiler reads next; they make no further round due."""
        ...


def make_host_demand(tables: Tables, dialects: Group[Dialect], node: ThisNode) -> HostDemand:
    """Return the answer of the enabled dialects, for the intent and for what reads the kernel."""
    return HostDemand(tables, dialects, node.name)


class BfdRunner:
    """Contributed by the cell that runs BFD sessions; without it peers have none."""


class IntentLoop:
    """The job that runs rounds of intent."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        intent: IntentTables,
        event_links: EventTraceLinks,
        node: ThisNode,
        secrets_namespace: SecretsNamespace,
        options: IntentOptions,
        dialects: Group[Dialect],
        steps: Group[IntentStep],
        claims: ClaimStore,
        states: DialectStates,
        host_demand: HostDemand,
        metrics: Metrics,
        readiness: Readiness,
        health: Health,
        jobs: Jobs,
        trace_links: ApplyTraceLinks,
        bfd_runners: Group[BfdRunner],
        installed: Group[InstallingDialects],
        api_servers: ApiServers,
    ) -> None:
        self._database = database
        self._tables = tables
        self._intent = intent
        self._event_links = event_links
        self.options = options
        self._node = node.name
        self._secrets_namespace = secrets_namespace.name
        self._dialects = dialects
        self._installing = installing(installed)
        self._api_servers = api_servers
        self._steps = steps
        self._claims = claims
        self._states = states
        self._host_demand = host_demand
        self._duration = metrics.reconcile_duration.labels("intent")
        self._health = health
        self._synced = readiness.gate("sources", "the first reading of all sources")
        self._problems = intent.problems.changes(database)
        self._known: dict[tuple[object, ...], Problem] = {}
        self.problems: Counter[str] = Counter()
        """The problems of administrators that each dialect has had so far, solved ones as well."""
        self._drained: str | None = None
        self._drain_of: object = None
        """The state of the table of peers that `_drained` is of."""
        self._rounds = 0
        self._compiler: IntentCompiler | None = None
        self._trace_links = trace_links
        self.bfd_off = "" if bfd_runners else WITHOUT_BFD
        """Why peers have no BFD session; empty where they may have one."""
        self._done: Subject[None] = Subject()
        self.ready = False
        """Whether a round has been done: some dialect has been read."""
        self.complete = False
        """Whether one has been done with all dialects."""
        jobs.add("rounds", self._run)

    @property
    def done(self) -> Observable[None]:
        """Emits after each round, the first one once a dialect has been read."""
        return self._done

    @property
    def is_current(self) -> bool:
        """Whether all sources have been read and no object is a problem of an administrator."""
        snapshot = self._database.snapshot()
        return (
            self.complete
            and not self._intent.pending_dialects.count(snapshot)
            and all(map(self._is_of_tenant, self._problem_rows(snapshot)))
        )

    def _problem_rows(self, snapshot: Snapshot) -> list[Problem | SourceProblem]:
        """Return the problems of the intent and of the sources."""
        return [
            *self._intent.problems.all(snapshot),
            *self._tables.source_problems.all(snapshot),
        ]

    def explainer(self) -> Explainer | None:
        """Return what explains the intent; None before the first round."""
        return self._compiler.explainer() if self.ready and self._compiler is not None else None

    def unrestricted_addresses(self) -> tuple[str, ...]:
        """Return which addresses of Services no rule restricts, as sentences; before a round none."""
        if not self.ready or self._compiler is None:
            return ()
        addresses = unrestricted(self._compiler.address_rules)
        snapshot, tables = self._database.snapshot(), self._tables
        known = (
            self._steps or tables.of(CONFIG_MAP).count(snapshot) or tables.nodes.count(snapshot) > 1
        )
        return tuple(addresses if known else [*addresses, OTHER_NODES_UNKNOWN])

    async def _run(self) -> None:
        compiler = self._compiler = self._new_compiler()

        async def run(since: float | None) -> float | None:
            with self._duration.time():
                for step in self._steps:
                    await in_slices(step.slices())
                summary = await in_slices(compiler.slices())
            if not summary.ready:
                names = ", ".join(summary.waiting_for)
                self._health.ok(f"waiting for the first reading of all sources: {names}")
                return summary.retry
            self.ready = True
            self._trace_links.add([summary.span] if summary.span else [], since)
            if not summary.waiting_for:
                self.complete = True
                self._synced()
            self._claims.keep(compiler.owners)
            self._states.keep(compiler.states)
            self._done.on_next(None)
            self._report()
            return summary.retry

        tables = {table.name: table for step in self._steps for table in step.followed}
        tables |= {table.name: table for table in compiler.followed}
        signal = Signal(*(table.observable for table in tables.values()))
        await run_rounds(signal, run, settle_turns=SETTLE_TURNS)

    def _new_compiler(self) -> IntentCompiler:
        """Return a compiler; after a failure with empty route sets, as its memory may be wrong."""
        if self._rounds:
            self._intent.clear(self._database)
        self._rounds += 1
        return IntentCompiler(
            self._database,
            self._tables,
            self._intent,
            self._dialects,
            self._node,
            secrets_namespace=self._secrets_namespace,
            options=self.options,
            owners=self._claims.owners,
            states=self._states.states,
            host_demand=self._host_demand,
            operator_in_process=bool(self._steps),
            installing=self._installing,
            trace_links=self._event_links,
            bfd_off=self.bfd_off,
            api_hosts=self._api_servers.hosts,
            on_error=_log_failed_dialect,
            clock=asyncio.get_running_loop().time,
        )

    def _report(self) -> None:
        snapshot = self._database.snapshot()
        solved: list[Problem] = []
        new: list[Problem] = []
        for change in self._problems.next(snapshot):
            row = change.row
            key = (row.objects, row.field, row.message)
            if change.deleted:
                known = self._known.pop(key, None)
                solved += [] if known is None else [known]
            elif key not in self._known:
                self._known[key] = row
                new.append(row)
                self.problems[row.dialect] += 0 if row.of_tenant else row.count
        PROBLEMS.write(solved, new)
        self._report_drain(snapshot)
        # A tenant's Service does not make the agent's health degraded.
        own = [problem for problem in self._known.values() if not problem.of_tenant]
        pending = min(self._intent.pending_dialects.all(snapshot), default=None)
        if pending is not None:
            tables = ", ".join(pending.unread)
            text = (
                f"{pending.dialect} waits for the first reading of {tables}; other dialects go on"
            )
            self._health.degraded(text)
        elif own:
            first = min(own)
            self._health.degraded(first_of(str(first), len(own)))
        else:
            routes, peers = self._intent.routes.count(snapshot), self._intent.peers.count(snapshot)
            # In each round: not a call of `counted`.
            self._health.ok(
                f"{routes} route{'s' * (routes != 1)}, {peers} peer{'s' * (peers != 1)}"
            )

    def _report_drain(self, snapshot: Snapshot) -> None:
        peers = snapshot.state(self._intent.peers)
        if peers is self._drain_of:
            return
        self._drain_of = peers
        drained = drain.describe(self._intent.peers.all(snapshot))
        if drained == self._drained:
            return
        self._drained = drained
        scope = self._health.scope("drain")
        if drained is None:
            scope.remove()
            log.info("the node is no longer drained", event_name="intent.drain_over")
        else:
            scope.ok(drained)
            log.info("the node is drained", event_name="intent.drain", reason=drained)

    def collect(self) -> list[GaugeMetricFamily]:
        """Return the counts of objects, routes and problems."""
        snapshot = self._database.snapshot()
        objects = GaugeMetricFamily(
            "waggle_source_objects", "Objects that the sources have.", labels=["kind"]
        )
        for table in self._tables.resources:
            objects.add_metric([table.name], table.count(snapshot))
        routes = GaugeMetricFamily("waggle_intent_routes", "Routes that shall be advertised.")
        routes.add_metric([], self._intent.routes.count(snapshot))
        problems = GaugeMetricFamily("waggle_problems", "Conflicts and invalid objects.")
        of_tenants = GaugeMetricFamily(
            "waggle_tenant_problems", "Problems that users of namespaces cause and solve."
        )
        rows = self._problem_rows(snapshot)
        tenants = sum(map(self._is_of_tenant, rows))
        problems.add_metric([], len(rows) - tenants)
        of_tenants.add_metric([], tenants)
        drained = GaugeMetricFamily("waggle_drained", "1 while the routes of the node are drained.")
        drained.add_metric([], self._drained is not None)
        return [objects, routes, problems, of_tenants, drained]

    def _is_of_tenant(self, row: Problem | SourceProblem) -> bool:
        return row.of_tenant if isinstance(row, Problem) else self._tables.is_of_tenant(row)


def _log_failed_dialect(dialect: str, error: Exception) -> None:
    log.error(
        "a dialect cannot be compiled; its last intent is kept",
        event_name="intent.dialect_failed",
        dialect=dialect,
        exc_info=error,
    )


WIRING = Wiring(
    provides=(IntentTables, make_host_demand, IntentLoop),
    invokes=(IntentLoop,),
    contributes=(provide(IntentLoop, as_=MetricsCollector),),
)
