"""Metrics of the feeds from the API server, read at each scrape."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final, TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from resources.kubernetes import REASONS_OF_ENDS, Phase, Reflector

LABELS: Final = ("kind", "namespace")
Names: TypeAlias = tuple[str, str]


class FeedMetrics:
    """The metrics of feeds, by kind and namespace: each named object has a feed of its own.

    The counts of feeds that have ended stay in the sums of the others: a counter that decreases is a
    reset, and Prometheus would add the whole remainder anew.
    """

    def __init__(self) -> None:
        self._last: dict[Reflector, tuple[Names, Counter[str]]] = {}
        """At the last reading."""
        self._ended: defaultdict[Names, Counter[str]] = defaultdict(Counter)

    def collect(self, reflectors: Iterable[Reflector]) -> Iterable[Metric]:
        """Yield the metrics of all feeds."""
        up = GaugeMetricFamily(
            "waggle_kubernetes_feed_up",
            "Whether a kind is listed and watched without failure.",
            labels=LABELS,
        )
        counters = {
            name: CounterMetricFamily(f"waggle_kubernetes_{name}", text, labels=LABELS)
            for name, text in (
                ("lists", "Complete lists that were read."),
                ("watches", "Watches that were started."),
                ("failures", "Lists and watches that failed."),
            )
        }
        ends = CounterMetricFamily(
            "waggle_kubernetes_watch_restarts",
            "Watches that ended and were started again.",
            labels=[*LABELS, "reason"],
        )
        feeds: defaultdict[Names, list[Reflector]] = defaultdict(list)
        for reflector in reflectors:
            feeds[reflector.status.kind, reflector.status.namespace].append(reflector)
        for names, counts in self._sums(feeds).items():
            phases = {feed.status.phase for feed in feeds[names]}
            if phases != {Phase.MISSING}:
                up.add_metric(names, phases <= {Phase.FOLLOWING, Phase.MISSING})
            for name, counter in counters.items():
                counter.add_metric(names, counts[name])
            for reason in REASONS_OF_ENDS:
                ends.add_metric([*names, reason], counts[f"ended {reason}"])
        return [up, *counters.values(), ends]

    def _sums(self, feeds: dict[Names, list[Reflector]]) -> dict[Names, Counter[str]]:
        present = {feed: (names, _counts(feed)) for names, of in feeds.items() for feed in of}
        for feed in self._last.keys() - present.keys():
            names, counts = self._last[feed]
            self._ended[names].update(counts)
        self._last = present
        for names in self._ended.keys() - feeds.keys():
            del self._ended[names]
        sums = {names: Counter(self._ended.get(names)) for names in feeds}
        for names, counts in present.values():
            sums[names].update(counts)
        return sums


def _counts(feed: Reflector) -> Counter[str]:
    counts = Counter({f"ended {reason}": number for reason, number in feed.watch_ends.items()})
    counts.update(lists=feed.lists, watches=feed.watches, failures=feed.failures)
    return counts
