"""Spans of the batches that the writer is given, from the changes that they come from."""

from __future__ import annotations

from typing import final

from opentelemetry import trace

from reconcilers.round_span import start_round_span
from resources.enumeration import counted_are
from resources.trace_links import TraceLinks

_tracer = trace.get_tracer("waggle.kernel")


@final
class BatchSpans:
    """A span ``kernel.batch`` from the hand-over of each batch until the writer has confirmed it."""

    def __init__(self) -> None:
        self._links = TraceLinks()
        self._open: dict[int, trace.Span] = {}

    def note(self) -> None:
        """Note that the current span, if there is one, has changed routes of the next batch."""
        _add_current(self._links)

    def begin(self, number: int, routes: int, *, at_once: bool = False) -> None:
        """Begin the span of a batch; without a recorded change it has none.

        ``at_once``: it has the changes of the current span, and precedes the changes that were noted.
        """
        links = self._links
        if at_once:
            links = TraceLinks()
            _add_current(links)
        causes, _ = links.take()
        if causes:
            span = self._open[number] = start_round_span(_tracer, "kernel.batch", causes)
            span.set_attribute("waggle.route_count", routes)

    def end(self, number: int, failures: int, seconds: float) -> None:
        """End the span of a confirmed batch: ``failures`` are routes, ``seconds`` the writer's time."""
        span = self._open.pop(number, None)
        if span is not None:
            span.set_attribute("waggle.failed_count", failures)
            span.set_attribute("waggle.writer_seconds", seconds)
            if failures:
                span.set_status(
                    trace.StatusCode.ERROR, f"{counted_are(failures, 'route')} not installed"
                )
            span.end()

    def abandon(self) -> None:
        """End the spans of batches that no writer confirms any more."""
        for span in self._open.values():
            span.set_status(trace.StatusCode.ERROR, "the writer has disconnected")
            span.end()
        self._open.clear()


def _add_current(links: TraceLinks) -> None:
    span = trace.get_current_span()
    if span.is_recording():
        links.add([span.get_span_context()])
