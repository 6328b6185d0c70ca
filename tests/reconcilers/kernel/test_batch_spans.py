"""A trace leads from the change of routes to the batches that the writer is given."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from reconcilers.kernel import batch_spans
from reconcilers.kernel.writer.protocol_messages import MAX_ROUTES, Reason
from reconcilers.target import runner
from speaker.api import NO_PATHS, BestPathChange
from speaker.nlri import IPV4_UNICAST
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    MAIN,
    ONE,
    PREFIX,
    Agent,
    hops,
    many,
    wire,
)


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Where the spans go."""
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for module in (batch_spans, runner):
        monkeypatch.setattr(module, "_tracer", provider.get_tracer("test"))
    return exporter


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    """Return the ended spans of a name, oldest first."""
    return [span for span in exporter.get_finished_spans() if span.name == name]


def test_a_batch_is_a_span_below_the_step_that_changes_routes(
    exporter: InMemorySpanExporter,
) -> None:
    agent = Agent().start()
    agent.table(ONE, PREFIX)
    exporter.clear()
    agent.change(ONE, "20.0.0.0/8")
    (batch,) = named(exporter, "kernel.batch")
    (step,) = named(exporter, "apply.kernel-routes")
    assert batch.parent == step.context
    assert batch.links == ()
    attributes = {"waggle.route_count": 1, "waggle.failed_count": 0}
    assert attributes.items() <= dict(batch.attributes or {}).items()
    assert (step.attributes or {})["waggle.objects"] == ("254/ipv4-unicast/20",)


def test_without_a_trace_a_batch_has_no_span() -> None:
    agent = Agent().start()
    agent.table(ONE, PREFIX)
    assert agent.kernel.installed.spans._open == {}


def test_a_batch_of_several_changes_is_a_trace_of_its_own_with_links_to_them(
    exporter: InMemorySpanExporter,
) -> None:
    spans = Agent().start().kernel.installed.spans
    causes = []
    for name in ("first", "second"):
        with batch_spans._tracer.start_as_current_span(name) as span:
            spans.note()
            spans.note()
            causes.append(span.get_span_context())
    spans.begin(99, 2)
    spans.end(99, 0, 0.001)
    (batch,) = named(exporter, "kernel.batch")
    assert batch.parent is None
    assert [link.context for link in batch.links] == causes


def test_a_single_change_is_no_part_of_the_trace_of_changes_that_wait(
    exporter: InMemorySpanExporter,
) -> None:
    agent = Agent().start().table(ONE, "198.51.100.0/24")
    exporter.clear()
    installed, large = agent.kernel.installed, map(wire, many(5 * MAX_ROUTES))
    installed.change(MAIN, dict.fromkeys(large, hops("10.88.0.1")))
    with batch_spans._tracer.start_as_current_span("waits") as waits:
        installed.change(MAIN, {wire("20.0.0.0/8"): hops("10.88.0.1")})
    item = BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, (wire(PREFIX),))
    with batch_spans._tracer.start_as_current_span("single") as single:
        agent.kernel.best_paths("main", [item], [item])
    agent.writer.run()
    traces = [(batch.parent, batch.links) for batch in named(exporter, "kernel.batch")]
    assert traces == [(single.get_span_context(), ()), (waits.get_span_context(), ())]


def test_unconfirmed_and_failed_batches_end_as_errors(
    exporter: InMemorySpanExporter,
) -> None:
    agent = Agent().start()
    agent.table(ONE, PREFIX)
    exporter.clear()
    agent.writer.reject = Reason.TABLE_FULL
    agent.change(ONE, "20.0.0.0/8")
    with batch_spans._tracer.start_as_current_span("step"):
        agent.kernel.installed.spans.note()
    agent.kernel.installed.spans.begin(99, 1)
    agent.writer.connect()
    failed, abandoned = named(exporter, "kernel.batch")
    assert failed.status.description == "1 route is not installed"
    assert abandoned.status.description == "the writer has disconnected"
