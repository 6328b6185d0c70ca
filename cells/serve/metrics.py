"""The metrics of an agent in its local API: a sample an item, as a scrape has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cells.api.model import MetricItem
from cells.api.resource import ApiResource, Query
from cells.observability.exposition import is_exposed
from cells.observability.metrics import Metrics
from cells.state.node import ThisNode

SAMPLES_PER_SLICE: Final = 200


def metrics_resource(metrics: Metrics | None, node: ThisNode | None) -> tuple[ApiResource, ...]:
    """Return the path of the metrics; none without their cell, or without a node."""
    if metrics is None or node is None:
        return ()

    def read(query: Query) -> Iterator[Sequence[MetricItem]]:
        name = query.get("name", "")
        for metric in metrics.collect():
            if metric is None:
                yield ()
                continue
            for start in range(0, len(metric.samples), SAMPLES_PER_SLICE):
                yield [
                    MetricItem(
                        node=node.name,
                        name=sample.name,
                        type="untyped" if metric.type == "unknown" else metric.type,
                        labels=dict(sample.labels),
                        value=float(sample.value),
                        description=metric.documentation,
                    )
                    for sample in metric.samples[start : start + SAMPLES_PER_SLICE]
                    if name in sample.name and is_exposed(sample)
                ]

    return (ApiResource(path="/v1/metrics", kind="MetricList", parameters=("name",), read=read),)
