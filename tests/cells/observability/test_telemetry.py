"""Spans leave for a collector, and a collector that is not there costs nothing."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision, Sampler
from opentelemetry.trace import SpanContext, TraceFlags

from cells.hive import Cell, Group, Health, Late, Level, SettingError, load
from cells.hive.hive import Hive
from cells.hive.lifecycle import Lifecycle
from cells.observability import otlp_http, span_export
from cells.observability.process_attributes import ProcessAttributes, UnsampledSpans
from cells.observability.span_counts import LossReport, SpanCounts
from cells.observability.telemetry import Telemetry, traces_url, without_credentials
from cells.options import TelemetryOptions
from resources.trace_sampling import ROOTS
from tests.support.otlp import Collector
from tests.support.ports import free_port
from tests.support.wait import until
from waggle_agent.__main__ import CELLS as AGENT_CELLS
from waggle_operator.__main__ import CELLS as OPERATOR_CELLS


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[trace.TracerProvider]]:
    """Keep the provider of the whole process as it is, and leave no thread that goes on sending.

    Other tests would make spans without a collector, and meet an exporter that draws random numbers.
    A collector has a minute: the machine may have no time for its thread.
    """
    monkeypatch.setattr("cells.observability.telemetry.EXPORT_TIMEOUT", 60.0)
    monkeypatch.setattr("cells.observability.telemetry.FLUSH_TIMEOUT", 60.0)
    providers: list[trace.TracerProvider] = []
    monkeypatch.setattr(trace, "set_tracer_provider", providers.append)
    there = set(threading.enumerate())
    yield providers
    for thread in set(threading.enumerate()) - there:
        thread.join(60)
        assert not thread.is_alive()


def test_the_endpoint_is_a_base_url_or_a_whole_one() -> None:
    assert traces_url("http://c:4318") == "http://c:4318/v1/traces"
    assert traces_url("http://c:4318/") == "http://c:4318/v1/traces"
    assert traces_url("https://c/otlp/v1/traces") == "https://c/otlp/v1/traces"
    for wrong in ("localhost:4318", "ftp://c", "", "http://[::1", "http://:4318"):
        with pytest.raises(SettingError, match="--otlp-endpoint: is not an http"):
            traces_url(wrong)


@pytest.mark.parametrize("wrong", ["otlp://u:s3cret@c:4318", "u:s3cret@c", "ftp://c?k=s3cret"])
def test_credentials_of_a_wrong_endpoint_are_not_shown(wrong: str) -> None:
    with pytest.raises(SettingError) as error:
        traces_url(wrong)
    assert "s3cret" not in str(error.value)


def test_a_certificate_that_is_a_named_pipe_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(path))
    wrong = f"OTEL_EXPORTER_OTLP_CERTIFICATE: cannot be used: {path}: it is a named pipe"
    with pytest.raises(SettingError, match=wrong):
        build("https://c")
    # Without TLS no certificate is read.
    build("http://c")


AGENT = ProcessAttributes(
    {"service.name": "waggle-agent", "k8s.node.name": "n", "k8s.pod.name": ""}
)


def build(
    endpoint: str, *, ratio: float = 1.0, counts: SpanCounts | None = None, record_all: bool = False
) -> tuple[Lifecycle, Health, Telemetry]:
    lifecycle, health = Lifecycle(), Health()
    options = TelemetryOptions(otlp_endpoint=endpoint, interval_seconds=0.05, sample_ratio=ratio)
    unsampled = Late(lambda: Group((UnsampledSpans(),) if record_all else ()))
    unsampled.resolve()
    telemetry = Telemetry(
        lifecycle, health, options, counts or SpanCounts(), Group((AGENT,)), unsampled
    )
    return lifecycle, health, telemetry


def test_spans_arrive_and_the_last_ones_at_stop(installed: list[trace.TracerProvider]) -> None:
    with Collector() as collector:
        lifecycle, _, _ = build(collector.endpoint)

        async def scenario() -> None:
            await lifecycle.start()
            (provider,) = installed
            with provider.get_tracer("test").start_as_current_span("last words"):
                pass
            await lifecycle.stop()

        asyncio.run(scenario())
        (span,) = collector.named("last words")
        assert span.resource["service.name"] == "waggle-agent"
        assert span.resource["k8s.node.name"] == "n"
        assert span.resource["service.version"]
        assert "k8s.pod.name" not in span.resource, "an empty value"
        assert span.parent_id == ""


@pytest.mark.parametrize(
    ("cells", "flags", "expected"),
    [
        (
            AGENT_CELLS,
            {"--node-name": "worker-1"},
            {"service.name": "waggle-agent", "k8s.node.name": "worker-1"},
        ),
        (
            OPERATOR_CELLS,
            {"--kubeconfig": "in-cluster", "--lease-namespace": "waggle-system"},
            {"service.name": "waggle-operator", "k8s.namespace.name": "waggle-system"},
        ),
    ],
    ids=["agent", "operator"],
)
def test_each_program_is_a_service_of_its_own(
    cells: Sequence[Cell], flags: dict[str, str], expected: dict[str, str]
) -> None:
    flags = {**flags, "--otlp-endpoint": "http://127.0.0.1:4318"}
    hive = Hive(cells, load(cells, flags=flags))
    resource = span_export.resource(hive.get(Telemetry).process).attributes
    assert {name: resource[name] for name in expected} == expected


def test_the_environment_names_the_service_otherwise(
    installed: list[trace.TracerProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "edge")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=east")
    resource = span_export.resource(AGENT).attributes
    assert (resource["service.name"], resource["k8s.cluster.name"]) == ("edge", "east")


def test_credentials_of_the_url_are_not_shown() -> None:
    _, health, _ = build("http://me:secret@c:4318")
    assert (
        without_credentials("http://me:secret@c:4318/v1/traces?key=1") == "http://c:4318/v1/traces"
    )
    assert health.status is None or "secret" not in health.status.message


def sampled(sampler: Sampler, trace_id: int, parent: SpanContext | None, *links: bool) -> Decision:
    """Return the decision about a span with a parent, or with links to sampled spans and others."""
    context = Context()
    if parent is not None:
        context = trace.set_span_in_context(trace.NonRecordingSpan(parent), context)
    return sampler.should_sample(
        context, trace_id, "span", links=[trace.Link(cause(sampled=each)) for each in links]
    ).decision


def cause(*, sampled: bool) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    return SpanContext(1, 1, is_remote=False, trace_flags=flags)


FIRST, LAST = 0, (1 << 64) - 1
"""Trace IDs that a ratio between 0 and 1 takes first and last."""


def test_a_part_of_the_traces_is_sent_and_each_as_a_whole() -> None:
    sampler = span_export.OfCauses(0.5, record_all=False)
    assert sampler.share == 0.5
    # The root was drawn; what a span follows from decides then, not its own ID.
    for trace_id in (FIRST, LAST):
        assert sampled(sampler, trace_id, None) is Decision.RECORD_AND_SAMPLE
    assert sampled(sampler, LAST, cause(sampled=True)) is Decision.RECORD_AND_SAMPLE
    assert sampled(sampler, FIRST, cause(sampled=False)) is Decision.DROP
    assert sampled(sampler, LAST, None, False, True) is Decision.RECORD_AND_SAMPLE
    assert sampled(sampler, FIRST, None, False, False) is Decision.DROP


@pytest.mark.parametrize(("record_all", "share"), [(False, 0.25), (True, 1.0)])
def test_the_traces_of_the_process_are_drawn_while_it_sends_and_keeps_none(
    record_all: bool, share: float
) -> None:
    lifecycle, _, _ = build("http://192.0.2.1:4318", ratio=0.25, record_all=record_all)

    async def scenario() -> None:
        await lifecycle.start()
        assert ROOTS.share == share
        await lifecycle.stop()

    asyncio.run(scenario())
    assert ROOTS.share == 1.0


def test_an_agent_that_keeps_spans_records_unsampled_spans() -> None:
    sampler = span_export.OfCauses(0.5, record_all=True)
    assert sampler.share == 1.0, "each root has a span"
    assert sampled(sampler, LAST, None) is Decision.RECORD_ONLY
    assert sampled(sampler, FIRST, cause(sampled=False)) is Decision.RECORD_ONLY
    assert sampled(sampler, FIRST, None) is Decision.RECORD_AND_SAMPLE


def test_of_traces_that_are_not_sampled_nothing_is_sent(
    installed: list[trace.TracerProvider],
) -> None:
    counts = SpanCounts()
    with Collector() as collector:
        lifecycle, _, _ = build(collector.endpoint, ratio=0.0, counts=counts, record_all=True)

        async def scenario() -> None:
            await lifecycle.start()
            with installed[0].get_tracer("test").start_as_current_span("kept") as span:
                assert span.is_recording()
            await lifecycle.stop()

        asyncio.run(scenario())
        assert (collector.spans, counts.queued) == ([], 0)


class Held(SpanExporter):
    """A collector that answers nothing until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.held = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        assert spans
        self.held.set()
        self.go.wait(60)
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        self.go.set()


def test_spans_that_a_slow_collector_leaves_no_room_for_are_dropped_and_counted() -> None:
    counts, slow, results = SpanCounts(), Held(), list[bool]()
    exporter = span_export.CountingExporter(slow, counts, results.append)
    batches = BatchSpanProcessor(exporter, max_export_batch_size=2, schedule_delay_millis=10_000)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(span_export.BoundedQueue(batches, counts, 3))
    tracer = provider.get_tracer("test")
    for _ in range(2):
        tracer.start_span("in the request").end()
    assert slow.held.wait(60)
    for _ in range(5):
        tracer.start_span("behind it").end()
    assert (counts.queued, counts.taken, counts.dropped) == (5, 2, 2)
    slow.go.set()
    provider.shutdown()
    assert (counts.sent, counts.rejected, counts.lost) == (0, 5, 7)
    assert not any(results)
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for metric in counts.collect()
        for sample in metric.samples
    }
    assert samples["waggle_spans_dropped_total", "queue-full"] == 2
    assert samples["waggle_spans_dropped_total", "not-accepted"] == 5
    assert samples["waggle_spans_sent_total",] == 0
    assert samples["waggle_spans_queued",] == 0


def test_batches_are_sent_with_the_times_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    def exporter(*settings: object) -> Held:
        made.append(settings)
        return Held()

    def processor(inner: SpanExporter, **settings: object) -> BatchSpanProcessor:
        made.append(settings)
        return BatchSpanProcessor(inner)

    monkeypatch.setattr(span_export, "OtlpHttpExporter", exporter)
    monkeypatch.setattr(span_export, "BatchSpanProcessor", processor)
    provider = span_export.tracer_provider(
        "http://192.0.2.1:4318/v1/traces",
        timeout=3.0,
        interval=0.5,
        sampler=ALWAYS_ON,
        process={},
        counts=SpanCounts(),
        report=lambda _: None,
    )
    provider.shutdown()
    assert made == [
        ("http://192.0.2.1:4318/v1/traces", 3.0),
        {
            # Never full: what does not fit is counted before.
            "max_queue_size": span_export.QUEUE_SPANS + span_export.BATCH_SPANS,
            "max_export_batch_size": span_export.BATCH_SPANS,
            "schedule_delay_millis": 500.0,
        },
    ]


def test_an_exporter_that_raises_has_lost_its_spans() -> None:
    class Broken(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            raise ValueError(f"no encoding of {len(spans)} spans")

    counts, results = SpanCounts(), list[bool]()
    exporter = span_export.CountingExporter(Broken(), counts, results.append)
    with pytest.raises(ValueError, match="no encoding of 1 spans"):
        exporter.export([ReadableSpan("lost")])
    assert (counts.lost, counts.sent, results) == (1, 0, [False])


def test_lost_spans_are_one_warning_a_minute() -> None:
    counts, now = SpanCounts(), [0.0]
    losses = LossReport(counts, lambda: now[0])
    with structlog.testing.capture_logs() as logs:
        for second in range(121):
            now[0] = float(second)
            counts.rejected += 1
            losses.check("http://c:4318/v1/traces")
        now[0] = 500.0
        losses.check("http://c:4318/v1/traces")
    assert [line["count"] for line in logs] == [1, 60, 60], "none without a further loss"
    assert {line["event_name"] for line in logs} == {"telemetry.spans_lost"}
    assert {line["log_level"] for line in logs} == {"warning"}


def flushes(logs: Sequence[MutableMapping[str, Any]]) -> int:
    """Return how often the end has not waited for the last spans until they were sent, or lost."""
    return sum(line["event_name"] == "telemetry.flush_timeout" for line in logs)


def test_a_collector_that_is_down_shows_in_health_and_does_not_delay_the_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cells.observability.telemetry.EXPORT_TIMEOUT", 0.2)
    monkeypatch.setattr("cells.observability.telemetry.FLUSH_TIMEOUT", 1000.0)
    lifecycle, health, telemetry = build(f"http://127.0.0.1:{free_port('127.0.0.1')}")

    async def scenario() -> None:
        await lifecycle.start()
        with telemetry.tracer("test").start_as_current_span("lost"):
            pass
        await until(lambda: health.level() is Level.DEGRADED)
        assert health.status is not None
        assert health.status.message == "spans are lost: the collector does not accept them"
        with telemetry.tracer("test").start_as_current_span("lost too"):
            pass
        await lifecycle.stop()

    with structlog.testing.capture_logs() as logs:
        asyncio.run(scenario())
    assert flushes(logs) == 1


def test_a_collector_that_is_known_to_hang_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cells.observability.telemetry.EXPORT_TIMEOUT", 0.2)
    monkeypatch.setattr("cells.observability.telemetry.FLUSH_TIMEOUT", 1000.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        lifecycle, health, telemetry = build(f"http://127.0.0.1:{silent.getsockname()[1]}")

        async def scenario() -> None:
            await lifecycle.start()
            with telemetry.tracer("test").start_as_current_span("lost"):
                pass
            await until(lambda: health.level() is Level.DEGRADED)
            with telemetry.tracer("test").start_as_current_span("lost too"):
                pass
            await lifecycle.stop()

        with structlog.testing.capture_logs() as logs:
            asyncio.run(scenario())
        assert flushes(logs) == 1


def test_a_collector_that_hangs_does_not_delay_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cells.observability.telemetry.FLUSH_TIMEOUT", 0.3)
    monkeypatch.setattr("cells.observability.telemetry.EXPORT_TIMEOUT", 1000.0)
    monkeypatch.setattr(otlp_http, "FIRST_PAUSE", 2000.0)  # it tries once
    there = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as silent:
        lifecycle, _, telemetry = build(f"http://127.0.0.1:{silent.getsockname()[1]}")

        async def scenario() -> None:
            await lifecycle.start()
            with telemetry.tracer("test").start_as_current_span("never"):
                pass
            # It is connected, and hangs.
            connection, _ = await asyncio.to_thread(silent.accept)
            hanging.append(connection)
            await lifecycle.stop()

        hanging: list[socket.socket] = []
        with structlog.testing.capture_logs() as logs:
            asyncio.run(scenario())
        assert flushes(logs) == 1
        # Nor does anything wait for the exporter's thread after the loop has ended.
        left = set(threading.enumerate()) - there
        assert left
        assert all(thread.daemon for thread in left)
    for connection in hanging:
        connection.close()


@pytest.mark.parametrize("status", [403, 503])
def test_spans_that_a_collector_refuses_are_counted_and_health_shows_it(
    status: int, installed: list[trace.TracerProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the real exporter: a refusal, and a status after which it would try again."""
    # It would try again later than within the time of an export.
    monkeypatch.setattr(otlp_http, "FIRST_PAUSE", 1000.0)
    counts = SpanCounts()
    with Collector(status=status) as collector:
        lifecycle, health, _ = build(collector.endpoint, counts=counts)

        async def scenario() -> None:
            await lifecycle.start()
            (provider,) = installed
            tracer = provider.get_tracer("test")
            for _ in range(3):
                tracer.start_span("refused").end()

            def is_known() -> bool:
                return counts.rejected == 3 and health.level() is Level.DEGRADED

            await until(is_known)
            await lifecycle.stop()

        asyncio.run(scenario())
        assert collector.bodies
    assert (counts.sent, counts.queued) == (0, 3)
