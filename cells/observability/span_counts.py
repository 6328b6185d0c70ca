"""The numbers of spans that were sent to a collector and that were lost, and the warning about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, final

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

WARNING_SECONDS: Final = 60.0
"""Between two warnings about lost spans, at least."""

log = structlog.get_logger("waggle.telemetry")


@final
class SpanCounts:
    """Sampled spans since the start.

    `queued` and `dropped` are written where spans end, the others in the exporter's thread.
    """

    def __init__(self) -> None:
        self.queued = 0
        self.taken = 0
        """Queued spans of which a request was made."""
        self.sent = 0
        self.rejected = 0
        """Of requests that the collector did not answer in time, or answered with an error."""
        self.dropped = 0
        """For lack of room in the queue."""

    @property
    def lost(self) -> int:
        """The spans that the collector does not have, and will not get."""
        return self.rejected + self.dropped

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics."""
        sent = CounterMetricFamily("waggle_spans_sent", "Spans that the collector accepted.")
        sent.add_metric([], self.sent)
        yield sent
        lost = CounterMetricFamily(
            "waggle_spans_dropped",
            "Spans that were not sent: the queue was full, or the collector did not accept them.",
            labels=["reason"],
        )
        lost.add_metric(["queue-full"], self.dropped)
        lost.add_metric(["not-accepted"], self.rejected)
        yield lost
        waiting = GaugeMetricFamily("waggle_spans_queued", "Spans that wait to be sent.")
        waiting.add_metric([], self.queued - self.taken)
        yield waiting


@final
class LossReport:
    """Logs lost spans, one warning a minute."""

    def __init__(self, counts: SpanCounts, now: Callable[[], float]) -> None:
        """``now`` is monotonic, in seconds."""
        self._counts = counts
        self._now = now
        self._reported = 0
        self._due = now()

    def check(self, url: str) -> None:
        """Log what was lost since the last warning, where one is due."""
        lost = self._counts.lost
        if lost == self._reported or self._now() < self._due:
            return
        log.warning(
            "spans are lost: the collector is down, slow or does not accept them",
            event_name="telemetry.spans_lost",
            url=url,
            count=lost - self._reported,
        )
        self._reported, self._due = lost, self._now() + WARNING_SECONDS
