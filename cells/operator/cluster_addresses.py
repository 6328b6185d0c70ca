"""The leader's job that publishes the addresses of the cluster for agents, which read one object."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import structlog
from prometheus_client.core import Counter

from cells.apply.outcomes import OutcomeLog, failure_text, object_ref, reason
from cells.apply.reconcile import Runners
from cells.hive import Health
from cells.operator.leader_check import MANAGER
from cells.operator.owner import Owner
from cells.sources.api_server import Kubernetes
from reconcilers.dialect import Dialect
from reconcilers.operator.cluster_addresses import ClusterAddressesReconciler
from reconcilers.target import ReconcileOutcome, Runner
from reconcilers.target.reconciler import ObjectKey
from resources.kubernetes import Writer
from resources.tables import Tables
from statedb import Database

log = structlog.get_logger("waggle.operator")


class ClusterAddressesJob:
    """Writes the object while this operator leads."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        dialects: Sequence[Dialect],
        kubernetes: Kubernetes,
        leads: asyncio.Event,
        namespace: str,
        owner: Owner,
        runners: Runners,
        errors: Counter,
        health: Health,
    ) -> None:
        self._database = database
        self._tables = tables
        self._dialects = dialects
        self._kubernetes = kubernetes
        self._leads = leads
        self._namespace = namespace
        self._owner = owner
        self._runners = runners
        self._errors = errors
        self._health = health

    async def run(self) -> None:
        """Publish after changes, until cancelled."""
        await self._leads.wait()
        async with self._kubernetes.writer(MANAGER) as writer:
            addresses = self._reconciler(writer)
            outcomes = self._outcomes(addresses)
            runner = Runner(
                self._database,
                None,
                [addresses],
                random.SystemRandom(),
                report=outcomes.note,
                name="operator",
            )
            await self._runners.run(runner, lambda: self._report(runner, addresses))

    def _reconciler(self, writer: Writer) -> ClusterAddressesReconciler:
        return ClusterAddressesReconciler(
            writer,
            self._database,
            self._tables,
            self._dialects,
            self._namespace,
            unread=lambda: self._kubernetes.unread,
            owners=lambda: self._owner.references(writer),
            now=asyncio.get_running_loop().time,
        )

    def _outcomes(self, addresses: ClusterAddressesReconciler) -> OutcomeLog[str]:
        def fields(outcome: ReconcileOutcome) -> dict[str, Any]:
            _, namespace, name = outcome.key
            if outcome.error is None:
                return {"object": f"{namespace}/{name}", "octets": addresses.octets}
            return {
                "object": str(object_ref(outcome.key)),
                "what": "apply",
                "reason": reason(outcome),
                "attempt": outcome.attempts,
                "retry_in": round(outcome.retry_in, 1),
            }

        return OutcomeLog(
            fields,
            lambda outcome: outcome.reconciler,
            failed=lambda **fields: log.warning(
                "not written", event_name="operator.write_failed", **fields
            ),
            written=lambda **fields: log.info(
                "published the addresses of the cluster",
                event_name="operator.addresses_published",
                **fields,
            ),
            errors=self._errors,
        )

    def _report(self, runner: Runner, addresses: ClusterAddressesReconciler) -> None:
        if text := failure_text(runner.reports(), lambda _, key: f"{_title(key)} is not written"):
            self._health.degraded(text)
        elif addresses.octets is None:
            self._health.ok("waits for the Nodes")
        elif addresses.missing:
            kept = "new addresses are missing, and former ones stay"
            missing = "; ".join(addresses.missing)
            self._health.degraded(f"{_title(addresses.key)}: {kept}: {missing}")
        else:
            self._health.ok(f"published, {addresses.octets} octets")


def _title(key: ObjectKey) -> str:
    kind, namespace, name = key
    return f"{kind} {namespace}/{name}"
