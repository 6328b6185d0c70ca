"""Counters of feeds, which come and go with the Secrets that objects refer to."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from cells.sources.feed_metrics import FeedMetrics
from resources.kubernetes import Phase

if TYPE_CHECKING:
    from resources.kubernetes import Reflector


class Feed:
    """Stands for the loop of a feed."""

    def __init__(
        self, lists: int, *, namespace: str = "bgp", phase: Phase = Phase.FOLLOWING
    ) -> None:
        self.status = SimpleNamespace(kind="Secret", namespace=namespace, phase=phase)
        self.lists, self.watches, self.failures = lists, 2 * lists, 0
        self.watch_ends = Counter(closed=lists)


def samples(metrics: FeedMetrics, *feeds: Feed) -> dict[tuple[str, ...], float]:
    found = metrics.collect([cast("Reflector", feed) for feed in feeds])
    return {
        (sample.name.removeprefix("waggle_kubernetes_"), *sample.labels.values()): sample.value
        for metric in found
        for sample in metric.samples
    }


def test_the_counts_of_feeds_that_end_stay_in_the_sum() -> None:
    metrics, first, second = FeedMetrics(), Feed(5), Feed(3)
    both = samples(metrics, first, second)
    one = samples(metrics, second)
    assert both == one, "no counter decreases"
    assert one["lists_total", "Secret", "bgp"] == 8
    assert one["watches_total", "Secret", "bgp"] == 16
    assert one["watch_restarts_total", "Secret", "bgp", "closed"] == 8
    second.lists += 1
    assert samples(metrics, second, Feed(1))["lists_total", "Secret", "bgp"] == 10


def test_a_namespace_without_feeds_has_no_series() -> None:
    metrics = FeedMetrics()
    samples(metrics, Feed(5, namespace="gone"), Feed(1))
    assert {key[2] for key in samples(metrics, Feed(1))} == {"bgp"}
    assert samples(metrics, Feed(1, namespace="gone"))["lists_total", "Secret", "gone"] == 1


def test_a_kind_that_the_api_server_does_not_have_is_not_down() -> None:
    assert ("feed_up", "Secret", "bgp") not in samples(FeedMetrics(), Feed(0, phase=Phase.MISSING))
    failing = samples(FeedMetrics(), Feed(1), Feed(1, phase=Phase.FAILING))
    assert failing["feed_up", "Secret", "bgp"] == 0
