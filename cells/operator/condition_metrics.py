"""Metrics of conditions that another program has of the same objects, so that its alerts go on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily

from reconcilers.dialect import ConditionMetric
from reconcilers.model import Condition, ObjectRef

_STATUSES = {"true": True, "false": False}


def condition_metrics(
    metrics: Iterable[ConditionMetric], conditions: Mapping[ObjectRef, Iterable[Condition]]
) -> Iterator[GaugeMetricFamily]:
    """Yield a gauge for each metric: of each object a series for each status, 1 for the present one."""
    for metric in metrics:
        gauge = GaugeMetricFamily(metric.name, metric.text, labels=["name", "condition", "status"])
        for ref in sorted(ref for ref in conditions if ref.kind == metric.kind.name):
            for condition in conditions[ref]:
                if condition.type == metric.type:
                    for word, status in _STATUSES.items():
                        gauge.add_metric(
                            [ref.name, condition.type, word], condition.status is status
                        )
        yield gauge
