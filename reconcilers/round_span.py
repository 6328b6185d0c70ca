"""The span of a round: it continues the trace of its causes, and links to causes of several traces.

So the ordinary case, one change, is one trace from the object's event to the UPDATE. A round whose
causes are of several traces is a trace of its own, since a span has one parent.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, StatusCode, Tracer

from reconcilers.model import ReconcileStatus
from resources.trace_links import SDK, is_recorded

MAX_NAMES: Final = 32
"""Objects that a span names."""


def round_span(
    tracer: Tracer, name: str, causes: Sequence[SpanContext]
) -> AbstractContextManager[Span]:
    """Start the span of a round (OpenTelemetry), and make it the current one.

    Of a trace that is not recorded the cause is the current span, and none is started: where few traces
    are sampled, most rounds.
    """
    if SDK not in sys.modules:
        return trace.INVALID_SPAN
    if causes and not any(map(is_recorded, causes)):
        return trace.use_span(trace.NonRecordingSpan(causes[0]))
    context, links = _origin(causes)
    return tracer.start_as_current_span(name, context=context, links=links)


def step_span(tracer: Tracer, name: str) -> AbstractContextManager[Span] | None:
    """Start the span of a step of the current round, if that is recorded."""
    if SDK in sys.modules and trace.get_current_span().is_recording():
        return tracer.start_as_current_span(name)
    return None


def start_round_span(tracer: Tracer, name: str, causes: Sequence[SpanContext]) -> Span:
    """Start the span of a round's work that goes on elsewhere; the caller ends it."""
    context, links = _origin(causes)
    return tracer.start_span(name, context=context, links=links)


def _origin(causes: Sequence[SpanContext]) -> tuple[Context, list[trace.Link]]:
    # Without a cause: no part of whatever span its task was created in.
    if not causes:
        return Context(), []
    # The latest cause is the parent: a route that waits for the kernel's answer has two.
    *others, parent = causes
    if not others or {cause.trace_id for cause in others} == {parent.trace_id}:
        context = trace.set_span_in_context(trace.NonRecordingSpan(parent), Context())
        return context, list(map(trace.Link, others))
    return Context(), list(map(trace.Link, causes))


def describe_objects(
    span: Span,
    keys: Collection[tuple[str, ...]],
    failing: Mapping[tuple[str, ...], ReconcileStatus],
) -> None:
    """Name the objects of a step in the span of its round, and the first failing one."""
    if not span.is_recording():
        return
    span.set_attribute("waggle.objects", ["/".join(key) for key in islice(keys, MAX_NAMES)])
    span.set_attribute("waggle.object_count", len(keys))
    failed = [key for key in keys if key in failing]
    if failed:
        span.set_attribute("waggle.failed_count", len(failed))
        error = failing[failed[0]].error
        span.set_status(StatusCode.ERROR, f"{'/'.join(failed[0])}: {error}")
