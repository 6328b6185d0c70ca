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
from resources.trace_links import SDK, UNSAMPLED, is_recorded
from resources.trace_sampling import ROOTS

MAX_NAMES: Final = 32
"""Objects that a span names."""
_UNSAMPLED_SPAN: Final = trace.NonRecordingSpan(UNSAMPLED)


def round_span(
    tracer: Tracer, name: str, causes: Sequence[SpanContext]
) -> AbstractContextManager[Span]:
    """Start the span of a round (OpenTelemetry), and make it the current one.

    It follows from the causes that are recorded. Where there are others only, and where its trace is
    not begun, there is none, and the current one remains: most rounds of an agent that samples.
    """
    if SDK not in sys.modules:
        return trace.INVALID_SPAN
    recorded = [cause for cause in causes if is_recorded(cause)]
    if not recorded and (causes or not ROOTS.draw()):
        return _UNSAMPLED_SPAN
    context, links = _origin(recorded)
    return tracer.start_as_current_span(name, context=context, links=links)


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
