"""The webhook cell: wires the reviewer, the server and the keeper of its certificate."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from typing import Final

import structlog
from prometheus_client.core import CounterMetricFamily, Metric

from cells.hive import Group, Health, Wiring, provide
from cells.hive.jobs import Jobs
from cells.hive.lifecycle import Lifecycle
from cells.intent.installing_dialects import InstallingDialects
from cells.observability.listen_address import parse_address
from cells.observability.metrics import CertificateHolder, MetricsCollector
from cells.operator.election import Leadership
from cells.operator.leader_check import MANAGER
from cells.operator.owner import Owner
from cells.operator.webhook.certificate import CertificateKeeper
from cells.operator.webhook.server import WebhookServer
from cells.options import WebhookOptions
from cells.sources.api_server import Kubernetes
from cells.sources.resources import SecretsNamespace
from reconcilers.admission import Reviewer, Verdict
from reconcilers.dialect import Admission, Dialect, extended
from resources.tables import Tables
from statedb import Database

OTHER_KINDS: Final = "other"

log = structlog.get_logger("waggle.webhook")


class Webhook:
    """Reviews objects on every replica."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        dialects: Group[Dialect],
        secrets_namespace: SecretsNamespace,
        kubernetes: Kubernetes,
        leadership: Leadership,
        owner: Owner,
        options: WebhookOptions,
        health: Health,
        lifecycle: Lifecycle,
        jobs: Jobs,
        installing: InstallingDialects,
    ) -> None:
        host, port = parse_address(options.address or "", "--webhook")
        self._reviewed = {
            kind.name: dialect
            for dialect, admission in extended(dialects, Admission)
            for kind in admission.kinds
        }
        self._kubernetes = kubernetes
        self._reviews: Counter[tuple[str, str]] = Counter()
        reviewer = Reviewer(database, tables, dialects, secrets_namespace.name, installing.dialects)
        server = WebhookServer(host, port, reviewer, self._unready, self._observe)
        self._keeper = CertificateKeeper(
            server,
            namespace=leadership.namespace,
            secret=options.stored_in,
            owners=owner.references,
            configuration=options.configuration,
            names=options.names,
            leads=lambda: leadership.leads,
            health=health,
            now=lambda: dt.datetime.now(dt.UTC),
        )
        lifecycle.append("webhook", reserve=server.reserve, stop=server.stop)
        jobs.add("webhook", self._run)

    async def _run(self) -> None:
        async with self._kubernetes.writer(MANAGER) as writer:
            await self._keeper.run(writer)

    def _unready(self, kind: str) -> str:
        """Return what a review has to wait for: the kinds of the object's own dialect.

        What another dialect cannot read makes a review less strict, and prevents none.
        """
        dialect = self._reviewed.get(kind)
        if dialect is None:
            return ""
        unread = self._kubernetes.unread
        for read in dialect.read(dialect.options, operator=True):
            if read.table in unread.kinds:
                return unread.kinds[read.table]
        return unread.waits_for

    def _observe(self, kind: str, verdict: Verdict) -> None:
        # Whatever reaches the port can name any kind; each would be a series.
        counted = kind if kind in self._reviewed else OTHER_KINDS
        self._reviews[counted, "allowed" if verdict.allowed else "denied"] += 1
        if not verdict.allowed:
            log.info("denied", event_name="webhook.denied", kind=kind, reason=verdict.message)

    @property
    def certificate_ends(self) -> Mapping[str, float]:
        """When the presented certificate and its authority end (`CertificateHolder`)."""
        presented = self._keeper.presented
        if presented is None:
            return {}
        ends = {"webhook": presented.end, "webhook-authority": presented.end_of_authority}
        return {name: end.timestamp() for name, end in ends.items()}

    def collect(self) -> list[Metric]:
        """Return the number of reviews."""
        reviews = CounterMetricFamily(
            "waggle_webhook_reviews", "Objects reviewed.", labels=("kind", "verdict")
        )
        for labels, count in self._reviews.items():
            reviews.add_metric(labels, count)
        return [reviews]


WIRING = Wiring(
    invokes=(Webhook,),
    contributes=(
        provide(Webhook, as_=MetricsCollector),
        provide(Webhook, as_=CertificateHolder),
    ),
)
