"""The span of a round: it continues the trace of a single cause, and links to several.

So the ordinary case, one change, is one trace from the object's event to the UPDATE. A round with
several causes is a trace of its own, since a span has one parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, Tracer


def round_span(
    tracer: Tracer, name: str, causes: Sequence[SpanContext]
) -> AbstractContextManager[Span]:
    """Start the span of a round, and make it the current one."""
    context, links = None, None
    if len(causes) == 1:
        context = trace.set_span_in_context(trace.NonRecordingSpan(causes[0]), Context())
    elif causes:
        links = [trace.Link(cause) for cause in causes]
    return tracer.start_as_current_span(name, context=context, links=links)
