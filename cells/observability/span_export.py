"""The SDK's side of the telemetry cell: which spans are sent, how many wait, which are lost.

Imported by the telemetry cell alone, in a thread: the SDK is slow to import. Spans wait in a queue of
fixed size. A collector that is down, slow or refuses spans costs the spans that do not fit, and
nothing else; each loss is counted.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Final, final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import (
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)
from opentelemetry.trace import Link, SpanKind
from opentelemetry.trace.span import TraceState
from opentelemetry.util.types import Attributes

from cells.observability.otlp_http import OtlpHttpExporter
from cells.observability.span_counts import SpanCounts
from cells.version import version

QUEUE_SPANS: Final = 2048
"""Spans that wait to be sent, about 4 MB."""
KEPT: Final = TraceState([("waggle", "kept")])
"""Of spans that are recorded and not sampled: see `resources.trace_links.is_recorded`."""
BATCH_SPANS: Final = 512
"""Spans of one request."""


@final
class OfCauses(Sampler):
    """Samples a round with several causes if one of these is sampled, other traces by the root.

    The part of the roots that has a span is drawn before (`resources.trace_sampling`): `share`, and
    each of these is sampled. With ``record_all`` all spans are recorded, for the agent's own list of
    spans; then every root has one, and the ratio is applied here.
    """

    def __init__(self, ratio: float, *, record_all: bool) -> None:
        """``ratio``: the part of the traces without a parent or a cause that is sampled."""
        self.share = 1.0 if record_all else ratio
        self._by_root = ParentBased(TraceIdRatioBased(ratio if record_all else 1.0))
        self._record_all = record_all

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """See the SDK's Sampler."""
        parent = trace.get_current_span(parent_context).get_span_context()
        if links and not parent.is_valid:
            sampled = any(link.context.trace_flags.sampled for link in links)
            decision = Decision.RECORD_AND_SAMPLE if sampled else Decision.DROP
            result = SamplingResult(decision, attributes, trace_state)
        else:
            result = self._by_root.should_sample(
                parent_context, trace_id, name, kind, attributes, links, trace_state
            )
        if self._record_all and result.decision is Decision.DROP:
            return SamplingResult(Decision.RECORD_ONLY, attributes, KEPT)
        return result

    def get_description(self) -> str:
        """See the SDK's Sampler."""
        return "OfCauses"


@final
class CountingExporter(SpanExporter):
    """Sends batches, and counts the spans of each; called in the SDK's thread."""

    def __init__(
        self, inner: SpanExporter, counts: SpanCounts, report: Callable[[bool], None]
    ) -> None:
        """``report`` takes whether the collector accepted the batch."""
        self._inner = inner
        self._counts = counts
        self._report = report

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """See the SDK's SpanExporter."""
        self._counts.taken += len(spans)
        accepted = False
        try:
            result = self._inner.export(spans)
            accepted = result is SpanExportResult.SUCCESS
        finally:
            if accepted:
                self._counts.sent += len(spans)
            else:
                self._counts.rejected += len(spans)
            self._report(accepted)
        return result

    def shutdown(self) -> None:
        """See the SDK's SpanExporter."""
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """See the SDK's SpanExporter."""
        return self._inner.force_flush(timeout_millis)


@final
class BoundedQueue(SpanProcessor):
    """Passes spans on while there is room for them; counts the others."""

    def __init__(self, inner: SpanProcessor, counts: SpanCounts, size: int) -> None:
        self._inner = inner
        self._counts = counts
        self._size = size

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """See the SDK's SpanProcessor."""

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span that is sampled."""
        if not span.context.trace_flags.sampled:
            return
        counts = self._counts
        if counts.queued - counts.taken >= self._size:
            counts.dropped += 1
            return
        counts.queued += 1
        self._inner.on_end(span)

    def shutdown(self) -> None:
        """See the SDK's SpanProcessor."""
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """See the SDK's SpanProcessor."""
        return self._inner.force_flush(timeout_millis)


def resource(process: Mapping[str, str]) -> Resource:
    """Return what the spans are of, by OpenTelemetry's conventions; the environment comes first."""
    ours = {
        "service.version": version(),
        "host.name": socket.gethostname(),
        **{name: value for name, value in process.items() if value},
    }
    return Resource.create(ours).merge(OTELResourceDetector().detect())


def tracer_provider(
    url: str,
    *,
    timeout: float,
    interval: float,
    sampler: Sampler,
    process: Mapping[str, str],
    counts: SpanCounts,
    report: Callable[[bool], None],
) -> TracerProvider:
    """Return a provider that sends spans to a collector; times are in seconds."""
    # The hive stops the provider; an exit handler would do it a second time.
    provider = TracerProvider(resource=resource(process), shutdown_on_exit=False, sampler=sampler)
    exporter = CountingExporter(OtlpHttpExporter(url, timeout), counts, report)
    batches = BatchSpanProcessor(
        exporter,
        # Never full: what does not fit is counted before.
        max_queue_size=QUEUE_SPANS + BATCH_SPANS,
        max_export_batch_size=BATCH_SPANS,
        schedule_delay_millis=interval * 1000,
    )
    provider.add_span_processor(BoundedQueue(batches, counts, QUEUE_SPANS))
    return provider
