"""Metrics of dialects, as the metrics cell collects them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from prometheus_client.core import GaugeMetricFamily, Histogram, HistogramMetricFamily

from cells.observability.exposition import Collected, PlainCounter
from reconcilers.dialect import (
    CompatHistogram,
    CompatMetric,
    Dialect,
    Durations,
    MetricsContext,
    OperatorMetricsContext,
)

C = TypeVar("C", MetricsContext, OperatorMetricsContext)


def translated(
    read: Callable[[Dialect, C], Iterable[CompatMetric | CompatHistogram | None]],
    dialect: Dialect,
    context: C,
) -> Iterator[Collected]:
    """Yield the metrics that a dialect reads; its None as well."""
    for metric in read(dialect, context):
        match metric:
            case CompatHistogram():
                histogram = HistogramMetricFamily(metric.name, metric.text, labels=metric.labels)
                for labels, rounds in metric.samples:
                    histogram.add_metric(labels, rounds.buckets, rounds.sum)
                yield histogram
            case CompatMetric():
                make = PlainCounter if metric.type == "counter" else GaugeMetricFamily
                family = make(metric.name, metric.text, labels=metric.labels)
                # Peers with one set of labels in another program: a second sample of the same labels
                # makes the whole scrape invalid.
                for labels, value in dict(reversed(metric.samples)).items():
                    family.add_metric(labels, value)
                yield family
            case None:
                yield None


def durations(histogram: Histogram) -> Durations:
    """Return what a histogram has observed."""
    buckets: list[tuple[str, float]] = []
    total = 0.0
    for metric in histogram.collect():
        for sample in metric.samples:
            if sample.name.endswith("_bucket"):
                buckets.append((sample.labels["le"], sample.value))
            elif sample.name.endswith("_sum"):
                total = sample.value
    return Durations(tuple(buckets), total)
