"""Spans leave for a collector, and a collector that is not there costs nothing."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from opentelemetry import trace

from cells.hive import Health, Level, SettingError
from cells.hive.lifecycle import Lifecycle
from cells.observability.telemetry import Telemetry, traces_url
from cells.options import TelemetryOptions
from tests.support.otlp import Collector


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[trace.TracerProvider]]:
    """Keep the provider of the whole process as it is, and leave no thread that goes on sending.

    Other tests would make spans without a collector, and meet an exporter that draws random numbers.
    """
    providers: list[trace.TracerProvider] = []
    monkeypatch.setattr(trace, "set_tracer_provider", providers.append)
    there = set(threading.enumerate())
    yield providers
    for thread in set(threading.enumerate()) - there:
        thread.join(10)
        assert not thread.is_alive()


def test_the_endpoint_is_a_base_url_or_a_whole_one() -> None:
    assert traces_url("http://c:4318") == "http://c:4318/v1/traces"
    assert traces_url("http://c:4318/") == "http://c:4318/v1/traces"
    assert traces_url("https://c/otlp/v1/traces") == "https://c/otlp/v1/traces"
    for wrong in ("localhost:4318", "ftp://c", ""):
        with pytest.raises(SettingError, match="--otlp-endpoint: is not an http"):
            traces_url(wrong)


def build(endpoint: str) -> tuple[Lifecycle, Health, Telemetry]:
    lifecycle, health = Lifecycle(), Health()
    options = TelemetryOptions(otlp_endpoint=endpoint, interval_seconds=0.05)
    return lifecycle, health, Telemetry(lifecycle, health, options)


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
        assert span.service == "waggle-agent"
        assert span.parent_id == ""


def test_a_collector_that_is_down_shows_in_health_and_does_not_delay_the_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cells.observability.telemetry.EXPORT_TIMEOUT", 0.2)

    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    lifecycle, health, telemetry = build(f"http://127.0.0.1:{port}")

    async def scenario() -> float:
        await lifecycle.start()
        with telemetry.tracer("test").start_as_current_span("lost"):
            pass
        for _ in range(1000):
            if health.level() is Level.DEGRADED:
                break
            await asyncio.sleep(0.02)
        assert health.status is not None
        assert health.status.message == "spans are lost: the collector does not accept them"
        with telemetry.tracer("test").start_as_current_span("lost too"):
            pass
        began = time.monotonic()
        await lifecycle.stop()
        return time.monotonic() - began

    assert asyncio.run(scenario()) < 3


def test_a_collector_that_hangs_does_not_delay_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cells.observability.telemetry.FLUSH_TIMEOUT", 0.3)
    monkeypatch.setattr("cells.observability.telemetry.EXPORT_TIMEOUT", 0.8)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        lifecycle, _, telemetry = build(f"http://127.0.0.1:{silent.getsockname()[1]}")

        async def scenario() -> float:
            await lifecycle.start()
            with telemetry.tracer("test").start_as_current_span("never"):
                pass
            await asyncio.sleep(0.1)
            began = time.monotonic()
            await lifecycle.stop()
            return time.monotonic() - began

        began = time.monotonic()
        assert asyncio.run(scenario()) < 3
        # Nor does anything wait for the exporter's thread after the loop has ended.
        assert time.monotonic() - began < 5
    assert all(thread.daemon for thread in threading.enumerate()[1:])
