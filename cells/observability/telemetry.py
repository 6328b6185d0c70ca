"""The telemetry cell: spans of the whole process to a collector, over OTLP/HTTP; off by default.

The rooms below create spans with the OpenTelemetry API alone, which costs next to nothing while
this cell is off. The SDK is imported only when it is on. Exporting happens in the SDK's thread;
a collector that is down or slow shows in health, and neither delays work nor the end of the agent
by more than a fixed time.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import structlog
from opentelemetry import trace

from cells.hive import Health, SettingError, Wiring
from cells.hive.lifecycle import Lifecycle
from cells.options import TelemetryOptions

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

TRACES_PATH = "/v1/traces"
EXPORT_TIMEOUT = 5.0
"""Seconds that one export may take."""
FLUSH_TIMEOUT = 2.0
"""Seconds that the last export may hold up the end of the process."""

log = structlog.get_logger("waggle.telemetry")


def traces_url(endpoint: str) -> str:
    """Complete a collector's base URL; raises `SettingError` if it is no HTTP URL."""
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise SettingError("", "--otlp-endpoint", f"is not an http(s) URL: {endpoint!r}")
    path = parts.path if parts.path.strip("/") else TRACES_PATH
    return urlunsplit(parts._replace(path=path))


class Telemetry:
    """The process's tracer provider while the cell is started."""

    def __init__(self, lifecycle: Lifecycle, health: Health, options: TelemetryOptions) -> None:
        self._url = traces_url(options.otlp_endpoint or "")
        self._interval = options.interval_seconds
        self._ratio = options.sample_ratio
        self._health = health
        self._provider: TracerProvider | None = None
        # Among the first cells to start, so among the last to stop: the spans of the other
        # cells' stop hooks are still sent.
        lifecycle.append(
            "telemetry", start=self.start, stop=self.stop, stop_timeout=FLUSH_TIMEOUT + 1
        )

    async def start(self) -> None:
        """Install the tracer provider."""
        loop = asyncio.get_running_loop()

        def report(error: str | None) -> None:
            loop.call_soon_threadsafe(self._report, error)

        self._provider = await asyncio.to_thread(
            _provider, self._url, self._interval, self._ratio, report
        )
        trace.set_tracer_provider(self._provider)
        self._health.ok(f"sending to {self._url}")

    def tracer(self, name: str) -> trace.Tracer:
        """Return a tracer of this very provider (the global tracer is the process's first)."""
        if self._provider is None:
            return trace.get_tracer(name)
        return self._provider.get_tracer(name)

    async def stop(self) -> None:
        """Send what is left, for a limited time."""
        provider, self._provider = self._provider, None
        if provider is None:
            return
        # A thread of our own and not the loop's pool: asyncio.run waits for the pool's threads,
        # and an exporter that hangs would hold up the end of the process.
        done = asyncio.Event()
        loop = asyncio.get_running_loop()

        def shutdown() -> None:
            provider.shutdown()
            try:
                loop.call_soon_threadsafe(done.set)
            except RuntimeError:
                return  # the loop has not waited for us

        threading.Thread(target=shutdown, name="waggle-telemetry", daemon=True).start()
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT):
                await done.wait()
        except TimeoutError:
            log.warning("the last spans were not sent", event_name="telemetry.flush_timeout")

    def _report(self, error: str | None) -> None:
        if error is None:
            self._health.ok(f"sending to {self._url}")
        else:
            self._health.degraded(f"spans are lost: {error}")


def _provider(
    url: str, interval: float, ratio: float, report: Callable[[str | None], None]
) -> TracerProvider:
    """Build the SDK's side. Slow to import, so it is done in a thread."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        SpanExporter,
        SpanExportResult,
    )
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

    class Reporting(SpanExporter):
        """Exports batches and reports changes of the result; called in the SDK's thread."""

        def __init__(self, inner: SpanExporter) -> None:
            self._inner = inner
            self._failed = False

        def export(self, spans: Any) -> SpanExportResult:  # noqa: ANN401 - the SDK's own
            result = self._inner.export(spans)
            failed = result is not SpanExportResult.SUCCESS
            if failed != self._failed:
                self._failed = failed
                try:
                    report("the collector does not accept them" if failed else None)
                except RuntimeError:
                    return result  # the loop has ended before us
            return result

        def shutdown(self) -> None:
            self._inner.shutdown()

        def force_flush(self, timeout_millis: int = 30000) -> bool:
            return self._inner.force_flush(timeout_millis)

    resource = Resource.create(
        {
            "service.name": "waggle-agent",
            "service.version": importlib.metadata.version("waggle-bgp"),
            "host.name": socket.gethostname(),
        }
    )
    # The hive stops the provider; an exit handler would do it a second time.
    # A trace is recorded as a whole or not at all: a span follows its parent.
    sampler = ParentBased(TraceIdRatioBased(ratio))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False, sampler=sampler)
    exporter = OTLPSpanExporter(endpoint=url, timeout=EXPORT_TIMEOUT)
    provider.add_span_processor(
        BatchSpanProcessor(Reporting(exporter), schedule_delay_millis=interval * 1000)
    )
    return provider


WIRING = Wiring(
    invokes=(Telemetry,),
)
