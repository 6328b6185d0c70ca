"""Metrics that dialects read, as families of the exposition, and what a histogram has observed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from prometheus_client import Histogram
from prometheus_client.core import HistogramMetricFamily, Metric

from cells.observability.compat_metrics import durations, translated
from cells.observability.exposition import exposed_name
from reconcilers.dialect import CompatHistogram, CompatMetric, Durations, OperatorMetricsContext

ROUNDS = Durations((("1", 2.0), ("+Inf", 3.0)), 7.5)
DIALECT: Any = object()


def families(*metrics: CompatMetric | CompatHistogram | None) -> list[Metric | None]:
    context = OperatorMetricsContext({}, ROUNDS)

    def read(dialect: object, given: OperatorMetricsContext) -> Iterator[Any]:
        assert (dialect, given) == (DIALECT, context)
        yield from metrics

    return cast("list[Metric | None]", list(translated(read, DIALECT, context)))


def test_each_metric_is_a_family_with_its_samples() -> None:
    counter, pause, gauge = families(
        CompatMetric("toy_errors", "counter", "Errors.", ("of",), [(("a",), 2.0)]),
        None,
        CompatMetric("toy_up", "gauge", "Up.", (), [((), 1.0)]),
    )
    assert pause is None
    assert counter is not None
    assert gauge is not None
    assert [exposed_name(counter), exposed_name(gauge)] == ["toy_errors", "toy_up"]
    assert [(of.type, of.documentation) for of in (counter, gauge)] == [
        ("counter", "Errors."),
        ("gauge", "Up."),
    ]
    assert [(s.labels, s.value) for s in counter.samples] == [({"of": "a"}, 2.0)]
    assert [(s.labels, s.value) for s in gauge.samples] == [({}, 1.0)]


def test_of_samples_with_equal_labels_the_first_one_is_exposed() -> None:
    samples: list[tuple[tuple[str, ...], float]] = [(("a",), 1.0), (("b",), 2.0), (("a",), 3.0)]
    (family,) = families(CompatMetric("toy_up", "gauge", "Up.", ("peer",), samples))
    assert family is not None
    assert {s.labels["peer"]: s.value for s in family.samples} == {"a": 1.0, "b": 2.0}
    assert len(family.samples) == 2


def test_a_histogram_has_its_buckets_and_its_sum() -> None:
    histogram = CompatHistogram("toy_seconds", "Time.", ("of",), [(("a",), ROUNDS)])
    (family,) = families(histogram)
    assert isinstance(family, HistogramMetricFamily)
    assert (family.name, family.documentation) == ("toy_seconds", "Time.")
    assert [(s.name, s.labels, s.value) for s in family.samples] == [
        ("toy_seconds_bucket", {"of": "a", "le": "1"}, 2.0),
        ("toy_seconds_bucket", {"of": "a", "le": "+Inf"}, 3.0),
        ("toy_seconds_count", {"of": "a"}, 3.0),
        ("toy_seconds_sum", {"of": "a"}, 7.5),
    ]


def test_durations_are_the_buckets_and_the_sum_of_a_histogram() -> None:
    histogram = Histogram("toy", "Time.", buckets=(1.0, 5.0), registry=None)
    for seconds in (0.5, 3.0, 9.0):
        histogram.observe(seconds)
    assert durations(histogram) == Durations((("1.0", 1.0), ("5.0", 2.0), ("+Inf", 3.0)), 12.5)
