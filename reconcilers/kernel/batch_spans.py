"""Spans of the batches that the writer is given, from the best paths that they come from."""

from __future__ import annotations

from typing import final

from opentelemetry import trace

from resources.trace_links import TraceLinks

_tracer = trace.get_tracer("waggle.kernel")


@final
class BatchSpans:
    """A span ``kernel.batch`` from the hand-over of each batch until the writer has confirmed it."""

    def __init__(self) -> None:
        self.links = TraceLinks()
        """The spans of the changes since the last batch."""
        self._open: dict[int, trace.Span] = {}

    def begin(self, number: int, routes: int) -> None:
        """Begin the span of a batch. The first change is its parent, the others are links."""
        contexts, _ = self.links.take()
        if not contexts:
            return
        self._open[number] = _tracer.start_span(
            "kernel.batch",
            context=trace.set_span_in_context(trace.NonRecordingSpan(contexts[0])),
            links=[trace.Link(context) for context in contexts[1:]],
            attributes={"routes": routes},
        )

    def end(self, number: int, failures: int, seconds: float) -> None:
        """End it: ``failures`` are routes, ``seconds`` the writer's time."""
        span = self._open.pop(number, None)
        if span is not None:
            span.set_attributes({"failures": failures, "writer.seconds": seconds})
            span.end()

    def end_all(self) -> None:
        """End the spans of batches that no writer confirms any more."""
        for number in list(self._open):
            self.end(number, 0, 0.0)
