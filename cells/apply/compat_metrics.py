"""Metrics of an agent by the names of the programs that its dialects stand for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cells.apply.configuration_metrics import ConfigurationMetrics
from cells.apply.loop import ApplyLog, ApplyLoop
from cells.hive import Group
from cells.intent.cell import IntentLoop
from cells.observability.compat_metrics import durations, translated
from cells.observability.exposition import Collected
from cells.observability.metrics import Metrics
from cells.state.node import ThisNode
from reconcilers.dialect import CompatMetrics, Dialect, MetricsContext, Session, extended
from reconcilers.intent_tables import IntentTables
from resources.tables import Tables
from speaker.api import PeerStatus, SpeakerPort
from statedb import Database


class CompatCollector:
    """Reads the metrics of each dialect at a scrape, with ``--compat-metrics``."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        intent: IntentTables,
        speaker: SpeakerPort,
        node: ThisNode,
        dialects: Group[Dialect],
        loop: IntentLoop,
        apply: ApplyLoop,
        log: ApplyLog,
        configuration: ConfigurationMetrics,
        metrics: Metrics,
    ) -> None:
        self._database = database
        self._tables = tables
        self._intent = intent
        self._speaker = speaker
        self._node = node.name
        self._metrics = metrics
        self._loop = loop
        self._apply = apply
        self._log = log
        self._configuration = configuration
        self._read = [
            (dialect, metrics_of.agent)
            for dialect, metrics_of in extended(dialects, CompatMetrics)
            if metrics.compat and metrics_of.agent is not None
        ]

    def collect(self) -> Iterator[Collected]:
        """Yield the metrics of all dialects; sessions are read in slices."""
        if not self._read:
            return
        statuses: dict[tuple[str, str], PeerStatus] = {}
        for slice_ in self._speaker.peer_slices():
            statuses |= {(status.instance, status.name): status for status in slice_}
            yield None
        snapshot, intent = self._database.snapshot(), self._intent
        instances = {row.name: row for row in intent.instances.all(snapshot)}
        sessions = tuple(
            Session(peer, instances[peer.instance], status)
            for peer in intent.peers.all(snapshot)
            if (status := statuses.get((peer.instance, peer.name))) is not None
            and peer.instance in instances
        )
        yield None
        rounds = durations(self._metrics.reconcile_duration.labels("apply"))
        for dialect, read in self._read:
            context = MetricsContext(
                self._tables,
                snapshot,
                intent,
                dialect.name,
                self._node,
                sessions,
                self._log.failures,
                self._loop.problems[dialect.name],
                rounds,
                self._apply.has_applied,
                self._configuration.is_current,
            )
            yield from self._metrics.guard.collect(
                dialect.name, partial(translated, read, dialect, context)
            )
