"""The telemetry cell: spans of the whole process to a collector, over OTLP/HTTP; off by default.

The rooms below create spans with the OpenTelemetry API alone, which costs next to nothing while
this cell is off. The SDK is imported only when it is on (`span_export`). Exporting happens in the SDK's
thread; a collector that is down or slow shows in health, in metrics and in one warning a minute, and
neither delays work nor the end of the agent by more than a fixed time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import structlog
from opentelemetry import trace

from cells.hive import Group, Health, Late, SettingError, Wiring, provide
from cells.hive.lifecycle import Lifecycle
from cells.observability.metrics import MetricsCollector
from cells.observability.otlp_environment import named_pipe
from cells.observability.process_attributes import ProcessAttributes, UnsampledSpans
from cells.observability.span_counts import LossReport, SpanCounts
from cells.options import TelemetryOptions
from resources.given_file import NAMED_PIPE
from resources.trace_sampling import ROOTS

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
    try:
        parts = urlsplit(endpoint)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_http = False
    if not is_http:
        # Behind its credentials; what is no URL may have them anywhere before the last @.
        shown = endpoint.rpartition("@")[2].partition("?")[0]
        raise SettingError("", "--otlp-endpoint", f"is not an http(s) URL: {shown!r}")
    path = parts.path if parts.path.strip("/") else TRACES_PATH
    return urlunsplit(parts._replace(path=path))


def without_credentials(url: str) -> str:
    """Return a URL as it may be shown and logged."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))


class Telemetry:
    """The process's tracer provider while the cell is started."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        health: Health,
        options: TelemetryOptions,
        counts: SpanCounts,
        process: Group[ProcessAttributes],
        unsampled: Late[Group[UnsampledSpans]],
    ) -> None:
        self._url = traces_url(options.otlp_endpoint or "")
        if urlsplit(self._url).scheme == "https" and (pipe := named_pipe()):
            variable, path = pipe
            raise SettingError("", variable, f"cannot be used: {path}: {NAMED_PIPE}")
        self._shown = without_credentials(self._url)
        self._options = options
        self._health = health
        self._counts = counts
        self.process = {name: value for part in process for name, value in part.items()}
        """The attributes of the process in all spans."""
        # Late: the cell that keeps spans adds itself to the provider of this one.
        self._unsampled = unsampled
        self._provider: TracerProvider | None = None
        self._is_accepted = True
        """Whether the collector accepted the last batch."""
        # Among the first cells to start, so among the last to stop: the spans of the other
        # cells' stop hooks are still sent.
        lifecycle.append(
            "telemetry", start=self.start, stop=self.stop, stop_timeout=FLUSH_TIMEOUT + 1
        )

    async def start(self) -> None:
        """Install the tracer provider."""
        loop = asyncio.get_running_loop()
        losses = LossReport(self._counts, loop.time)

        def sent(accepted: bool) -> None:
            losses.check(self._shown)
            self._is_accepted = accepted
            if accepted:
                self._health.ok(f"sending to {self._shown}")
            else:
                self._health.degraded("spans are lost: the collector does not accept them")

        def report(accepted: bool) -> None:
            try:
                loop.call_soon_threadsafe(sent, accepted)
            except RuntimeError:
                return  # the loop has ended before the exporter

        self._provider = await asyncio.to_thread(self._new_provider, report)
        trace.set_tracer_provider(self._provider)
        self._health.ok(f"sending to {self._shown}")

    def _new_provider(self, report: Callable[[bool], None]) -> TracerProvider:
        # Slow to import.
        from cells.observability import span_export

        sampler = span_export.OfCauses(
            self._options.sample_ratio, record_all=bool(self._unsampled())
        )
        ROOTS.share = sampler.share
        return span_export.tracer_provider(
            self._url,
            timeout=EXPORT_TIMEOUT,
            interval=self._options.interval_seconds,
            sampler=sampler,
            process=self.process,
            counts=self._counts,
            report=report,
        )

    def tracer(self, name: str) -> trace.Tracer:
        """Return a tracer of this very provider (the global tracer is the process's first)."""
        if self._provider is None:
            return trace.get_tracer(name)
        return self._provider.get_tracer(name)

    async def stop(self) -> None:
        """Send what is left, for a limited time; a collector that is down is not waited for."""
        provider, self._provider = self._provider, None
        if provider is None:
            return
        ROOTS.share = 1.0
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
            async with asyncio.timeout(FLUSH_TIMEOUT if self._is_accepted else 0):
                await done.wait()
        except TimeoutError:
            log.warning("the last spans were not sent", event_name="telemetry.flush_timeout")


WIRING = Wiring(
    private=(SpanCounts,),
    invokes=(Telemetry,),
    contributes=(provide(SpanCounts, as_=MetricsCollector),),
)
