"""The jobs of an operator: leader election, writing of the plan, storage versions, its checks.

Every candidate reads, so that a new leader starts with complete tables. Nothing is written before
every kind was answered once, and nothing for a dialect while a kind of it cannot be read.
"""

from __future__ import annotations

import asyncio
import random
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Final

import structlog
from prometheus_client.core import Counter, CounterMetricFamily, GaugeMetricFamily

from cells.apply.outcomes import OutcomeLog, failure_text, object_ref, reason
from cells.apply.reconcile import Runners
from cells.hive import (
    Group,
    Health,
    Readiness,
    SettingError,
    Wiring,
    provide,
)
from cells.hive.hive import Shutdown
from cells.hive.jobs import Jobs
from cells.hive.rounds import in_slices, run_rounds
from cells.hive.signal import Signal
from cells.intent.installing_dialects import InstallingDialects
from cells.intent.problem_log import ProblemLog
from cells.observability.exposition import Collected
from cells.observability.metrics import Metrics, MetricsCollector
from cells.observability.process_attributes import ProcessAttributes
from cells.operator.abandoned import AbandonedObjectsCheck
from cells.operator.cluster_addresses import ClusterAddressesJob
from cells.operator.compat_metrics import CompatCollector
from cells.operator.election import Leadership
from cells.operator.leader_check import MANAGER, LeaderCheck, LeaderChecks
from cells.operator.leftovers import LeftoverObjects
from cells.operator.owner import Owner
from cells.operator.rivals import RivalSearch
from cells.operator.service_events import ServiceEventsCheck
from cells.operator.tested_versions import CompanionCheck
from cells.options import OperatorOptions
from cells.sources.api_server import UNREAD_SECONDS, Kubernetes
from cells.sources.resources import EventTraceLinks, SecretsNamespace
from reconcilers.dialect import Dialect, Operation, extended
from reconcilers.kernel.options import FibOptions
from reconcilers.model import ObjectRef, Problem
from reconcilers.operator import Plan, Planner
from reconcilers.operator.planned_conditions import PlannedConditions
from reconcilers.operator.planned_objects import PlannedObjects
from reconcilers.target import ReconcileOutcome, Runner
from resources.enumeration import first_of
from resources.kubernetes import Election, ElectionTiming, MigrationPass, Migrations
from resources.tables import Tables
from statedb import Database

SETTLE_TURNS = 8

log = structlog.get_logger("waggle.operator")
PROBLEMS: Final = ProblemLog(log, "operator.problem", "operator.solved")


def election_timing(options: OperatorOptions) -> ElectionTiming:
    """Check the timings of the election. Raises `SettingError`."""
    timing = ElectionTiming(
        lease=options.lease_duration_seconds,
        renew=options.renew_deadline_seconds,
        retry=options.lease_retry_seconds,
    )
    if timing.renew >= timing.lease:
        what = f"is not less than --lease-duration-seconds ({timing.lease}): {timing.renew:g}"
        raise SettingError("", "--renew-deadline-seconds", what)
    if timing.retry >= timing.renew:
        what = f"is not less than --renew-deadline-seconds ({timing.renew:g}): {timing.retry:g}"
        raise SettingError("", "--lease-retry-seconds", what)
    return timing


def make_leadership(
    options: OperatorOptions, owner: Owner, health: Health, shutdown: Shutdown
) -> Leadership:
    """Return the leadership of this process; its loss ends the program."""
    identity = options.identity or f"{socket.gethostname()}_{uuid.uuid4()}"
    return Leadership(
        Election(identity, MANAGER, options.lease_namespace, election_timing(options)),
        options.lease_namespace,
        MANAGER,
        owner,
        health.scope("leader"),
        shutdown,
    )


def make_installing_dialects(
    dialects: Group[Dialect], options: OperatorOptions
) -> InstallingDialects:
    """Return the dialects whose peers' routes agents install, by the option that both have."""
    return InstallingDialects(FibOptions(fib=options.fib).installing(dialects))


def make_runners() -> Runners:
    """Return the runners of an operator, which its jobs add."""
    return Runners()


class Operator:
    """The jobs of an operator."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        secrets_namespace: SecretsNamespace,
        kubernetes: Kubernetes,
        dialects: Group[Dialect],
        options: OperatorOptions,
        metrics: Metrics,
        readiness: Readiness,
        health: Health,
        leadership: Leadership,
        owner: Owner,
        jobs: Jobs,
        trace_links: EventTraceLinks,
        runners: Runners,
        installing: InstallingDialects,
    ) -> None:
        self._planner = Planner(
            database,
            dialects,
            secrets_namespace.name,
            report=options.status_report,
            installing=installing.dialects,
        )
        self._database = database
        self._trace_links = trace_links
        self._runners = runners
        self._kinds = tables.kinds
        types = (operation.condition_types for _, operation in extended(dialects, Operation))
        self._managed = frozenset().union(*types)
        self._kubernetes = kubernetes
        self._leadership = leadership
        self._duration = metrics.reconcile_duration.labels("operator")
        errors = metrics.reconcile_errors.labels("operator")
        self._outcomes = self._new_outcomes(errors)
        self._compat = CompatCollector(dialects, metrics, self._outcomes.failures)
        self._synced = readiness.gate("sources", "the first reading of all objects")
        self._health = health
        self._known: frozenset[Problem] = frozenset()
        self._objects: PlannedObjects | None = None
        jobs.add("election", self._elect)
        jobs.add("writes", self._write)
        addresses = ClusterAddressesJob(
            database,
            tables,
            dialects,
            kubernetes,
            self._leadership.gained,
            options.lease_namespace,
            owner,
            runners,
            errors,
            health.scope("cluster-addresses"),
        )
        jobs.add("cluster-addresses", addresses.run)
        if options.migrate_storage_versions:
            jobs.add("storage-versions", self._migrate)

    def _new_outcomes(self, errors: Counter) -> OutcomeLog[ObjectRef]:
        return OutcomeLog(
            self._fields,
            lambda outcome: object_ref(outcome.key),
            failed=_log_failed,
            repeated=_log_failed,
            written=lambda **fields: log.info("written", event_name="operator.written", **fields),
            errors=errors,
        )

    async def _elect(self) -> None:
        async with self._kubernetes.writer(MANAGER) as writer:
            await self._leadership.run(writer)

    async def _migrate(self) -> None:
        async with self._kubernetes.writer(MANAGER) as writer:
            migrations = Migrations(
                self._kinds, random.SystemRandom(), lambda: self._leadership.leads
            )
            while True:
                await self._leadership.gained.wait()
                result = await migrations.run_pass(writer)
                self._report_migrations(result)
                await asyncio.sleep(result.pause)

    def _report_migrations(self, result: MigrationPass) -> None:
        for migration in result.migrated:
            log.info(
                "stored in the present version",
                event_name="operator.migrated",
                kind=migration.kind,
                objects=migration.objects,
                dropped=", ".join(migration.dropped),
            )
        health = self._health.scope("storage-versions")
        if result.errors:
            first = first_of(str(result.errors[0]), len(result.errors))
            health.degraded(f"objects of old versions stay as they are: {first}")
        else:
            health.ok("every kind is stored in its present version")

    async def _write(self) -> None:
        async with self._kubernetes.writer(MANAGER) as writer:
            health = self._health.scope("objects")
            now = asyncio.get_running_loop().time
            tables = [table.name for table in self._planner.followed]
            objects = PlannedObjects(
                writer,
                self._kinds,
                tables,
                allowed=lambda: self._leadership.leads,
                on_adopted=_log_adopted,
                now=now,
            )
            self._objects = objects
            conditions = PlannedConditions(
                writer,
                self._kinds,
                self._managed,
                tables,
                allowed=lambda: self._leadership.leads,
                now=now,
                wall=time.time,
            )
            runner = Runner(
                self._database,
                None,
                [objects, conditions],
                random.SystemRandom(),
                report=self._outcomes.note,
                name="operator",
            )
            # An error of a kind is a state of its feed, and changes no table.
            signal = Signal(*runner.wakes(), self._kubernetes.source.statuses)

            async def run(_: float | None) -> float | None:
                with self._duration.time():
                    plan = await in_slices(self._planner.plan(self._kubernetes.unread))
                if plan is None:
                    return UNREAD_SECONDS
                self._synced()
                self._report(plan)
                if not self._leadership.gained.is_set():
                    await self._leadership.gained.wait()
                    # The tables may have changed since the plan was made.
                    signal.raise_flag()
                    return None
                if plan.blocked:
                    texts = [
                        f"nothing is written for {name}: {kind} cannot be read"
                        for name, kind in sorted(plan.blocked.items())
                    ]
                    self._health.degraded("; ".join(texts))
                else:
                    self._health.ok("follows what it reads")
                self._compat.conditions = plan.conditions
                self._compat.states = plan.states
                objects.plan(plan)
                conditions.plan(plan)
                causes, _ = self._trace_links.take()
                summary = await in_slices(runner.slices(now, causes))
                self._report_dropped(conditions.kinds_without_conditions)
                text = failure_text(runner.reports(), lambda _, key: str(object_ref(key)))
                if text:
                    health.degraded(text)
                else:
                    health.ok(f"all objects are written ({self._outcomes.writes} writes)")
                return None if summary.retry_at is None else max(0.0, summary.retry_at - now())

            with self._runners.listed(runner):
                await run_rounds(signal, run, settle_turns=SETTLE_TURNS)

    def _report_dropped(self, kinds: Sequence[str]) -> None:
        """Report kinds whose conditions are lost; agents write problems of objects as Events, too."""
        scope = self._health.scope("conditions")
        if kinds:
            names = ", ".join(kinds)
            scope.stopped(
                f"the definitions of {names} in the API server have no conditions: they are lost, and "
                f"problems are Events only; Waggle leaves definitions of other projects as they are"
            )
        else:
            scope.ok("stored with their objects")

    def _report(self, plan: Plan) -> None:
        problems = frozenset(plan.problems)
        PROBLEMS.write(sorted(self._known - problems), sorted(problems - self._known))
        self._known = problems
        scope = self._health.scope("problems")
        if problems:
            first = min(problems)
            scope.degraded(first_of(str(first), len(problems)))
        else:
            scope.ok("nothing is in conflict")

    def _fields(self, outcome: ReconcileOutcome) -> dict[str, Any]:
        objects = self._objects
        of_object = objects is not None and outcome.reconciler == objects.description.name
        verb = objects.verb(outcome.key) if objects is not None and of_object else "status"
        fields = {"object": str(object_ref(outcome.key)), "what": verb}
        if outcome.error is None:
            return fields
        failed = {"reason": reason(outcome), "attempt": outcome.attempts}
        return {**fields, **failed, "retry_in": round(outcome.retry_in, 1)}

    def collect(self) -> Iterator[Collected]:
        """Yield whether this operator leads, its writes, and the metrics of dialects."""
        leader = GaugeMetricFamily("waggle_operator_leader", "1 while this operator leads.")
        leader.add_metric([], self._leadership.gained.is_set())
        writes = CounterMetricFamily("waggle_operator_writes", "Objects and statuses written.")
        writes.add_metric([], self._outcomes.writes)
        yield from (leader, writes)
        yield from self._compat.collect()


def _log_failed(**fields: object) -> None:
    log.warning("not written", event_name="operator.write_failed", **fields)


def _log_adopted(ref: ObjectRef) -> None:
    log.info("adopted", event_name="operator.taken_over", object=str(ref))


def process_attributes(options: OperatorOptions) -> ProcessAttributes:
    """Return what the spans of an operator are of."""
    return ProcessAttributes(
        {
            "service.name": "waggle-operator",
            "service.instance.id": options.identity or "",
            "k8s.namespace.name": options.lease_namespace,
        }
    )


WIRING = Wiring(
    provides=(Owner, make_installing_dialects, make_leadership, make_runners),
    invokes=(Operator, LeaderChecks),
    contributes=(
        provide(Operator, as_=MetricsCollector),
        provide(make_runners, as_=MetricsCollector),
        process_attributes,
        provide(RivalSearch, as_=LeaderCheck),
        provide(CompanionCheck, as_=LeaderCheck),
        provide(AbandonedObjectsCheck, as_=LeaderCheck),
        provide(LeftoverObjects, as_=LeaderCheck),
        provide(ServiceEventsCheck, as_=LeaderCheck),
        provide(ServiceEventsCheck, as_=MetricsCollector),
    ),
)
