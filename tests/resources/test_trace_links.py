"""The spans that cause a round: each once, a limited number, sampled ones first."""

from __future__ import annotations

from opentelemetry.trace import INVALID_SPAN_CONTEXT, SpanContext, TraceFlags

from resources.trace_links import MAX_LINKS, TraceLinks


def context(number: int, *, sampled: bool = False) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    return SpanContext(number, number, is_remote=False, trace_flags=flags)


def test_each_span_is_linked_once_and_missing_spans_never() -> None:
    links = TraceLinks()
    links.add([context(1), INVALID_SPAN_CONTEXT, context(1)], since=2.0)
    links.add([context(2)], since=1.0)
    assert links.take() == ([context(1), context(2)], 1.0)
    assert links.take() == ([], None)


def test_beyond_the_limit_a_sampled_span_replaces_an_unsampled_span() -> None:
    links = TraceLinks()
    links.add([context(1, sampled=True), *(context(2 + n) for n in range(MAX_LINKS))])
    links.add([context(98, sampled=True), context(99)])
    found, _ = links.take()
    assert len(found) == MAX_LINKS
    assert [each.span_id for each in found if each.trace_flags.sampled] == [1, 98]
    assert 99 not in {each.span_id for each in found}
