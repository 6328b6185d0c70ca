"""Whether the speaker holds the configuration that the sources have now, and since when it does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from cells.apply.loop import ApplyLoop
from cells.hive import Group
from cells.intent.cell import IntentLoop
from cells.sources.resources import FollowedSource


class ConfigurationMetrics:
    """Compares after each round, and at each scrape.

    The configuration is current while every source is read, no object is a problem of an
    administrator, and every object is applied. Otherwise the last valid state of some objects is in
    effect.
    """

    def __init__(
        self,
        intent: IntentLoop,
        apply: ApplyLoop,
        sources: Group[FollowedSource],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``clock`` is Unix time."""
        self._intent = intent
        self._apply = apply
        self._sources = sources
        self._clock = clock
        self._current_until: float | None = 0.0
        """When it was current last; None while it is."""
        apply.rounds.subscribe(self._compare)

    def _compare(self, _: None = None) -> None:
        read = all(source.is_current for source in self._sources)
        if read and self._intent.is_current and self._apply.is_current:
            self._current_until = None
        elif self._current_until is None:
            self._current_until = self._clock()

    @property
    def is_current(self) -> bool:
        """Whether the configuration is current."""
        self._compare()
        return self._current_until is None

    def collect(self) -> Iterable[Metric]:
        """Yield both metrics."""
        self._compare()
        until = self._current_until
        current = GaugeMetricFamily(
            "waggle_config_current", "1 while the speaker holds what the sources have."
        )
        current.add_metric([], until is None)
        yield current
        last = GaugeMetricFamily(
            "waggle_config_current_timestamp_seconds",
            "When waggle_config_current was 1 last; 0 if it never was.",
        )
        last.add_metric([], self._clock() if until is None else until)
        yield last
