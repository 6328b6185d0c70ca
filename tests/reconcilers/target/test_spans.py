"""The spans of a round: each reconciler with the names of its objects, and what failed."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from reconcilers.target import runner
from tests.reconcilers.apply.applied_cluster import Applied


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Where the spans go."""
    provider, exporter = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(runner, "_tracer", provider.get_tracer("test"))
    return exporter


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def test_the_span_of_each_reconciler_names_its_objects(exporter: InMemorySpanExporter) -> None:
    applied = Applied()
    applied.run()
    spans = by_name(exporter)
    steps = {name: span for name, span in spans.items() if name != "apply.round"}
    assert {name: (span.attributes or {})["waggle.objects"] for name, span in steps.items()} == {
        "apply.instance": ("i",),
        "apply.route-set": (f"i/{applied.route_set()}",),
        "apply.import-policy": ("i/p",),
        "apply.peer": ("i/p",),
    }
    round_ = spans["apply.round"]
    assert all(span.parent == round_.context for span in steps.values())
    assert {(span.attributes or {})["waggle.object_count"] for span in steps.values()} == {1}
    assert all(span.status.is_unset for span in spans.values())


def test_an_object_that_fails_is_the_error_of_its_span(
    exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied = Applied()

    def refuse(*_: object) -> None:
        raise ValueError("no room")

    monkeypatch.setattr(applied.speaker, "set_peer", refuse)
    applied.run()
    spans = by_name(exporter)
    failed = spans["apply.peer"]
    assert not failed.status.is_ok
    assert failed.status.description is not None
    assert failed.status.description.startswith("i/p: ")
    assert "no room" in failed.status.description
    assert (failed.attributes or {})["waggle.failed_count"] == 1
    assert spans["apply.route-set"].status.is_unset
