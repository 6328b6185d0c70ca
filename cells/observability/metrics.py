"""The metrics cell: a registry of its own, the measurements that cells make, and the loop's lag.

Names follow Prometheus' conventions (base units, ``_total``) and never change. Labels hold names
of our own objects, never text that a peer chose. State that exists anyway (sessions, restarts) is
read at each scrape; only durations are recorded as they happen.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Iterable, Mapping
from typing import Protocol

from prometheus_client.core import (
    CollectorRegistry,
    Counter,
    CounterMetricFamily,
    GaugeMetricFamily,
    Histogram,
    Metric,
)
from prometheus_client.process_collector import ProcessCollector

from cells.hive import Group, Health, Late, Readiness, Wiring, provide
from cells.hive.jobs import Jobs, Supervisor
from cells.hive.rounds import in_slices
from cells.observability.collector_guard import CollectorGuard
from cells.observability.exposition import Collected, exposition
from cells.options import MetricsOptions
from cells.version import version
from reconcilers.sliced_work import Slices

FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Buckets in seconds: from half a millisecond, since a change usually takes a few."""
LAG_INTERVAL = 1.0
"""Seconds between two measurements: what an idle process wakes up for."""
LAG_DEGRADED = 1.0
"""Seconds of lag that health mentions: keepalives come a third of the hold time apart."""


class MetricsCollector(Protocol):
    """Metrics of state that exists anyway; the members of this group are read at each scrape."""

    def collect(self) -> Iterable[Collected]:
        """Yield the metrics, and None where other work may be done; called in the loop's thread."""


class CertificateHolder(Protocol):
    """A part of the program with certificates that end."""

    @property
    def certificate_ends(self) -> Mapping[str, float]:
        """When they end, by name, as Unix time."""


class Metrics:
    """All metrics of one program."""

    def __init__(
        self,
        jobs: Jobs,
        health: Health,
        options: MetricsOptions,
        collectors: Late[Group[MetricsCollector]],
    ) -> None:
        self.compat = options.compat
        """Whether dialects serve metrics by the names of other programs."""
        self.registry = CollectorRegistry()
        self.guard = CollectorGuard(health.scope("collectors"))
        self._collectors = collectors
        self._health = health
        self._scrape: asyncio.Task[bytes] | None = None
        self.reconcile_duration = Histogram(
            "waggle_reconcile_duration_seconds",
            "Time that one round took.",
            ["controller"],
            buckets=FAST,
            registry=self.registry,
        )
        self.reconcile_errors = Counter(
            "waggle_reconcile_errors",
            "Objects that could not be applied; each is tried again.",
            ["controller"],
            registry=self.registry,
        )
        self.propagation_duration = Histogram(
            "waggle_propagation_duration_seconds",
            "From the commit of a changed object until its routes were handed to the sessions.",
            buckets=FAST,
            registry=self.registry,
        )
        self.loop_lag = Histogram(
            "waggle_event_loop_lag_seconds",
            "Delay with which the event loop woke a sleeping task.",
            buckets=FAST,
            registry=self.registry,
        )
        # process_cpu_seconds_total, process_resident_memory_bytes ...: of the kernel, by /proc.
        ProcessCollector(registry=self.registry)
        jobs.add("loop-lag", self._measure_lag)

    def slices(self) -> Slices[bytes]:
        """Return everything in Prometheus' text format, in slices."""
        return exposition(self.collect())

    async def render(self) -> bytes:
        """Return everything in Prometheus' text format; scrapes at the same time share the work."""
        if self._scrape is None:
            self._scrape = asyncio.create_task(in_slices(self.slices()))
            self._scrape.add_done_callback(self._scraped)
        # A client that goes away cancels its own wait only.
        return await asyncio.shield(self._scrape)

    def _scraped(self, _: asyncio.Task[bytes]) -> None:
        self._scrape = None

    def collect(self) -> Iterable[Collected]:
        """Yield all metrics, and None where other work may be done; what one lacks, health names."""
        yield from self.guard.collect("process", self.registry.collect)
        for collector in self._collectors():
            yield from self.guard.collect(type(collector).__name__, collector.collect)

    async def _measure_lag(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LAG_INTERVAL
            await asyncio.sleep(LAG_INTERVAL)
            lag = max(0.0, loop.time() - due)
            self.loop_lag.observe(lag)
            if lag > LAG_DEGRADED:
                self._health.degraded(f"the event loop was blocked for {lag:.1f} s")
            else:
                self._health.ok("the event loop keeps up")


class ProcessMetrics:
    """The version, the restarts of jobs and the readiness of this process."""

    def __init__(self, supervisor: Supervisor, readiness: Readiness) -> None:
        self._supervisor = supervisor
        self._readiness = readiness

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics of the process."""
        build = GaugeMetricFamily(
            "waggle_build_info",
            "Constantly 1; the labels are the versions.",
            labels=["version", "python"],
        )
        build.add_metric([version(), platform.python_version()], 1)
        yield build
        restarts = CounterMetricFamily(
            "waggle_task_restarts", "Restarts of a failed job.", labels=["task"]
        )
        for name, count in self._supervisor.restarts.items():
            restarts.add_metric([name], count)
        yield restarts
        ready = GaugeMetricFamily("waggle_ready", "Whether the agent is ready.")
        ready.add_metric([], self._readiness.ready)
        yield ready


class CertificateMetrics:
    """When the certificates of this process end."""

    def __init__(self, holders: Late[Group[CertificateHolder]]) -> None:
        self._holders = holders

    def collect(self) -> Iterable[Metric]:
        """Yield the metric of all certificates."""
        ends = GaugeMetricFamily(
            "waggle_certificate_expiry_timestamp_seconds",
            "When a certificate ends.",
            labels=["certificate"],
        )
        for holder in self._holders():
            for name, end in holder.certificate_ends.items():
                ends.add_metric([name], end)
        yield ends


WIRING = Wiring(
    provides=(Metrics,),
    invokes=(Metrics,),
    contributes=(
        provide(ProcessMetrics, as_=MetricsCollector),
        provide(CertificateMetrics, as_=MetricsCollector),
    ),
)
