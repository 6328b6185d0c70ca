"""The intent cell: objects compiled to the neutral intent, one round for each burst of changes.

It also does the operator's part (NodeConfigs from ClusterConfigs), as its rounds contain it. A round
runs whole in one turn of the loop; what it cannot use it reports as a problem and goes on.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated

import msgspec
import structlog
from prometheus_client.core import GaugeMetricFamily
from reactivex import Observable
from reactivex.subject import Subject

from cells.hive import (
    Cell,
    Health,
    Jobs,
    Options,
    Readiness,
    SettingError,
    Signal,
    provide,
    setting,
)
from cells.hive.rounds import run_rounds
from cells.metrics import Metrics, MetricsCollector
from cells.node import ThisNode
from cells.resources import SecretsNamespace
from cells.trace_links import TraceLinks
from reconcilers.intent import drain
from reconcilers.intent.explanation import Explanation
from reconcilers.intent.options import DRAIN_TAINTS, Drain, IntentOptions, PeeringPolicies
from reconcilers.intent.round import IntentRound
from reconcilers.model import Problem
from reconcilers.tables import IntentTables
from resources.causes import PendingCauses
from resources.kubernetes import Reading
from resources.tables import Tables
from statedb import Database, Snapshot

SETTLE_TURNS = 3
"""Turns of the loop in which further commits join a round: microseconds, not a delay."""

log = structlog.get_logger("waggle.intent")


class IntentCellOptions(Options, frozen=True):
    """Options of the intent cell."""

    no_service_endpoints_routable: Annotated[
        bool,
        setting(
            "advertise a Service though it has no endpoint anywhere",
            flag="--no-service-endpoints-routable",
        ),
    ] = True
    legacy_origin_attribute: Annotated[
        bool,
        setting(
            "advertise Services' LoadBalancer addresses with ORIGIN INCOMPLETE",
            flag="--legacy-origin-attribute",
        ),
    ] = False
    peering_policies: Annotated[
        PeeringPolicies,
        setting(
            "what to do with CiliumBGPPeeringPolicies: follow them, but of several for a node none; "
            "of several the first; or translate them to objects of v2",
            flag="--peering-policies",
        ),
    ] = "exclusive"
    drain: Annotated[
        Drain,
        setting(
            "what becomes of the routes of a node that is cordoned or tainted: nothing, they are "
            "taken back, or they are told as a last choice",
            flag="--drain",
        ),
    ] = "off"
    drain_taints: Annotated[
        tuple[str, ...],
        setting(
            "keys of the taints of such a node; by default that of a cordoned one",
            flag="--drain-taint",
            metavar="KEY",
        ),
    ] = DRAIN_TAINTS
    drain_prepend: Annotated[
        int,
        msgspec.Meta(ge=0, le=16),
        setting(
            "with --drain=deprefer: how many more times our AS is in the path",
            flag="--drain-prepend",
        ),
    ] = 0
    router_id_allocation_ip_pool: Annotated[
        str | None,
        setting(
            "IPv4 prefix from which every instance of every node gets its router ID",
            flag="--router-id-allocation-ip-pool",
            metavar="CIDR",
        ),
    ] = None


def router_id_pool(text: str | None) -> str | None:
    """Check the pool. Raises `SettingError`."""
    if text is not None:
        try:
            ipaddress.IPv4Network(text)
        except ValueError as error:
            raise SettingError("", "--router-id-allocation-ip-pool", str(error)) from None
    return text


class IntentLoop:
    """The job that runs rounds of intent."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        intent: IntentTables,
        causes: PendingCauses,
        node: ThisNode,
        secrets_namespace: SecretsNamespace,
        options: IntentCellOptions,
        metrics: Metrics,
        readiness: Readiness,
        health: Health,
        jobs: Jobs,
        trace_links: TraceLinks,
        reading: Reading | None,
    ) -> None:
        self._database = database
        self._tables = tables
        self._intent = intent
        self._causes = causes
        self._options = IntentOptions(
            node=node.name,
            secrets_namespace=secrets_namespace.name,
            no_service_endpoints_routable=options.no_service_endpoints_routable,
            legacy_origin_attribute=options.legacy_origin_attribute,
            peering_policies=options.peering_policies,
            router_id_allocation_ip_pool=router_id_pool(options.router_id_allocation_ip_pool),
            drain=options.drain,
            drain_taints=options.drain_taints,
            drain_prepend=options.drain_prepend,
            # Of a cluster an agent reads its own node only; manifests have all of it.
            whole_cluster=reading is None,
        )
        self._duration = metrics.reconcile_duration.labels("intent")
        self._health = health
        self._synced = readiness.gate("sources", "the first reading of all sources")
        self._problems = intent.problems.changes(database)
        self._known: dict[tuple[object, ...], Problem] = {}
        self._drained: str | None = None
        self._rounds = 0
        self._round: IntentRound | None = None
        self._trace_links = trace_links
        self._done: Subject[None] = Subject()
        self.ready = False
        """Whether a round has been done with all sources read."""
        jobs.add("rounds", self._run)

    @property
    def done(self) -> Observable[None]:
        """Emits after each round, the first one once all sources have been read."""
        return self._done

    def explanation(self) -> Explanation | None:
        """Make what answers why something is advertised or not; None before the first round."""
        return self._round.explanation() if self.ready and self._round is not None else None

    async def _run(self) -> None:
        round_ = self._round = self._new_round()

        async def run(since: float | None) -> None:
            with self._duration.time():
                summary = round_.run()
            if not summary.ready:
                self._health.ok("waiting for the first reading of all sources")
                return
            self.ready = True
            self._trace_links.add([summary.span] if summary.span else [], since)
            self._synced()
            self._done.on_next(None)
            self._report()

        signal = Signal(*(table.observable for table in round_.followed))
        await run_rounds(signal, run, settle_turns=SETTLE_TURNS)

    def _new_round(self) -> IntentRound:
        """Make what does the rounds; after a failure from nothing, as its memory may be wrong."""
        if self._rounds:
            with self._database.write(self._intent.routes) as txn:
                self._intent.routes.delete_all(txn)
        self._rounds += 1
        return IntentRound(self._database, self._tables, self._intent, self._options, self._causes)

    def _report(self) -> None:
        snapshot = self._database.snapshot()
        for change in self._problems.next(snapshot):
            row = change.row
            key = (row.objects, row.field, row.message)
            if change.deleted:
                self._known.pop(key, None)
                log.info(
                    "problem solved",
                    event_name="intent.solved",
                    object=_objects(row),
                    field=row.field or None,
                )
            elif key not in self._known:
                self._known[key] = row
                log.warning(
                    "problem",
                    event_name="intent.problem",
                    object=_objects(row),
                    field=row.field or None,
                    reason=row.message,
                )
        self._report_drain(snapshot)
        if self._known:
            first = min(self._known.values())
            more = f" (and {len(self._known) - 1} more)" if len(self._known) > 1 else ""
            field = f": {first.field}" if first.field else ""
            self._health.degraded(f"{_objects(first)}{field}: {first.message}{more}")
        else:
            count = self._intent.routes.count(snapshot), self._intent.peers.count(snapshot)
            self._health.ok(f"{count[0]} routes, {count[1]} peers")

    def _report_drain(self, snapshot: Snapshot) -> None:
        found = drain.told(self._intent.peers.all(snapshot))
        if found == self._drained:
            return
        self._drained = found
        scope = self._health.scope("drain")
        if found is None:
            scope.remove()
            log.info("the node is drained no more", event_name="intent.drain_over")
        else:
            scope.ok(found)
            log.info("the node is drained", event_name="intent.drain", reason=found)

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
        count = self._intent.problems.count(snapshot) + self._tables.source_problems.count(snapshot)
        problems.add_metric([], count)
        drained = GaugeMetricFamily("waggle_drained", "1 while the routes of the node are drained.")
        drained.add_metric([], self._drained is not None)
        return [objects, routes, problems, drained]


def _objects(problem: Problem) -> str:
    return ", ".join(str(ref) for ref in problem.objects)


CELL = Cell(
    name="intent",
    description="Works out what this node shall advertise, and to whom.",
    options=IntentCellOptions,
    provides=(IntentTables, IntentLoop, TraceLinks),
    invokes=(IntentLoop,),
    contributes=(provide(IntentLoop, as_=MetricsCollector),),
)
