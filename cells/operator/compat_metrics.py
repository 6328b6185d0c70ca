"""Metrics of an operator by the names of the programs that its dialects stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from prometheus_client.core import GaugeMetricFamily

from cells.hive import Group
from cells.observability.compat_metrics import durations, translated
from cells.observability.exposition import Collected
from cells.observability.metrics import Metrics
from reconcilers.dialect import (
    CompatMetrics,
    ConditionMetric,
    Dialect,
    OperatorMetricsContext,
    extended,
)
from reconcilers.model import Condition, ObjectRef

_STATUSES = {"true": True, "false": False}


class CompatCollector:
    """Reads the metrics of each dialect at a scrape, with ``--compat-metrics``."""

    def __init__(
        self, dialects: Group[Dialect], metrics: Metrics, errors: Mapping[ObjectRef, int]
    ) -> None:
        """``errors``: the writes that failed, by object."""
        self._metrics = metrics
        self._errors = errors
        self._dialects = dialects if metrics.compat else ()
        self.conditions: Mapping[ObjectRef, tuple[Condition, ...]] = {}
        """Of the last plan, while this operator leads."""
        self.states: Mapping[str, Any] = {}
        """The `ClusterIntent.state` of each dialect by its name, of the same plan."""

    def collect(self) -> Iterator[Collected]:
        """Yield the metrics of all dialects."""
        rounds = durations(self._metrics.reconcile_duration.labels("operator"))
        for dialect, metrics_of in extended(self._dialects, CompatMetrics):
            if metrics_of.operator is not None:
                state = self.states.get(dialect.name)
                context = OperatorMetricsContext(self._errors, rounds, state)
                yield from self._metrics.guard.collect(
                    dialect.name, partial(translated, metrics_of.operator, dialect, context)
                )
        for dialect, metric in extended(self._dialects, ConditionMetric):
            yield from self._metrics.guard.collect(
                f"{dialect.name} conditions", partial(self._of_condition, metric)
            )

    def _of_condition(self, metric: ConditionMetric) -> Iterator[Collected]:
        """Yield a gauge: of each object a series for each status, 1 for the present one."""
        gauge = GaugeMetricFamily(metric.name, metric.text, labels=["name", "condition", "status"])
        for ref in sorted(ref for ref in self.conditions if ref.kind == metric.kind.name):
            for condition in self.conditions[ref]:
                if condition.type == metric.type:
                    for word, status in _STATUSES.items():
                        gauge.add_metric(
                            [ref.name, condition.type, word], condition.status is status
                        )
        yield gauge
