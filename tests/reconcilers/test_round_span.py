"""The span of a round: which trace it belongs to, and which causes it links to."""

from __future__ import annotations

import sys
from unittest.mock import Mock

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, TraceFlags

from reconcilers.round_span import round_span
from resources.trace_links import SDK, UNSAMPLED
from resources.trace_sampling import ROOTS


def cause(trace: int, span: int) -> SpanContext:
    return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def span_of(*causes: SpanContext) -> ReadableSpan:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with round_span(provider.get_tracer("tests"), "apply.round", causes):
        pass
    provider.shutdown()
    [span] = exporter.get_finished_spans()
    return span


def trace_of(span: ReadableSpan) -> int:
    trace_id: int = span.context.trace_id
    return trace_id


def links(span: ReadableSpan) -> list[int]:
    return [link.context.span_id for link in span.links]


def parent(span: ReadableSpan) -> int | None:
    return span.parent and span.parent.span_id


def test_a_round_with_one_cause_continues_its_trace() -> None:
    span = span_of(cause(7, 1))
    assert (trace_of(span), parent(span), links(span)) == (7, 1, [])


def test_a_round_with_causes_of_one_trace_continues_it_after_the_latest() -> None:
    """A route whose next hop the kernel has looked up has two: the route, and the round that waited."""
    span = span_of(cause(7, 1), cause(7, 2), cause(7, 3))
    assert (trace_of(span), parent(span), links(span)) == (7, 3, [1, 2])


def test_a_round_with_causes_of_several_traces_is_a_trace_of_its_own() -> None:
    span = span_of(cause(7, 1), cause(8, 2))
    assert trace_of(span) not in (7, 8)
    assert (parent(span), links(span)) == (None, [1, 2])


def test_a_round_without_a_cause_is_a_trace_of_its_own() -> None:
    span = span_of()
    assert (parent(span), links(span)) == (None, [])


def test_a_round_follows_from_the_causes_that_are_recorded() -> None:
    """The trace of a change that is not begun is nothing to link to."""
    span = span_of(UNSAMPLED, cause(7, 1))
    assert (trace_of(span), parent(span), links(span)) == (7, 1, [])


@pytest.mark.parametrize(("share", "causes"), [(1.0, [UNSAMPLED]), (0.0, [])])
def test_a_round_whose_trace_is_not_begun_has_no_span_and_no_call_of_a_tracer(
    share: float, causes: list[SpanContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ROOTS, "share", share)
    tracer = Mock()
    with round_span(tracer, "apply.round", causes) as span:
        assert not trace.get_current_span().is_recording()
        assert span.get_span_context() is UNSAMPLED, "nor has what follows from it"
    assert tracer.mock_calls == []


def test_without_the_sdk_a_round_has_no_span_and_no_call_of_a_tracer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tracer = Mock()
    monkeypatch.delitem(sys.modules, SDK)
    with round_span(tracer, "apply.round", [cause(7, 1)]) as span:
        assert trace.get_current_span() is span is trace.INVALID_SPAN
    assert tracer.mock_calls == []
