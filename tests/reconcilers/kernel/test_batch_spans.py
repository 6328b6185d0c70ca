"""A trace leads from changed best paths to the batches of routes that they become."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from reconcilers.kernel import batch_spans
from reconcilers.kernel.writer.values import Reason
from tests.reconcilers.kernel.test_reconciler import ONE, PREFIX, Agent


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Where the spans go."""
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(batch_spans, "_tracer", provider.get_tracer("test"))
    return exporter


def test_a_batch_is_a_span_below_the_change_that_it_comes_from(
    exporter: InMemorySpanExporter,
) -> None:
    agent = Agent().start()
    spans = agent.kernel.installed.spans
    with batch_spans._tracer.start_as_current_span("first") as first:
        spans.links.add([first.get_span_context()])
    with batch_spans._tracer.start_as_current_span("second") as second:
        spans.links.add([second.get_span_context()])
    agent.table(ONE, PREFIX)
    (batch,) = (span for span in exporter.get_finished_spans() if span.name == "kernel.batch")
    assert batch.parent == first.get_span_context()
    assert [link.context for link in batch.links] == [second.get_span_context()]
    attributes = dict(batch.attributes or {})
    assert (attributes["routes"], attributes["failures"]) == (1, 0)
    # Without a recorded change there is none.
    agent.change(ONE, "20.0.0.0/8")
    assert len(exporter.get_finished_spans()) == 3


def test_a_batch_that_no_writer_confirms_and_one_that_fails_end_too(
    exporter: InMemorySpanExporter,
) -> None:
    agent = Agent().start()
    agent.writer.reject = Reason.TABLE_FULL
    for prefixes in ([PREFIX], ["20.0.0.0/8"]):
        with batch_spans._tracer.start_as_current_span("change") as change:
            agent.kernel.installed.spans.links.add([change.get_span_context()])
        if prefixes == [PREFIX]:
            agent.table(ONE, PREFIX)
        else:
            agent.writer.sent.clear()
            agent.kernel.installed.spans.begin(99, 1)
            agent.writer.connect()
    found = [span for span in exporter.get_finished_spans() if span.name == "kernel.batch"]
    assert [dict(span.attributes or {})["failures"] for span in found] == [1, 0]
