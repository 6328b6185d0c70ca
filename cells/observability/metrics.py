"""The metrics cell: a registry of its own, the measurements that cells make, and the loop's lag.

Names follow Prometheus' conventions (base units, ``_total``) and never change. Labels hold names
of our own objects, never text that a peer chose. State that exists anyway (sessions, restarts) is
read at each scrape; only durations are recorded as they happen.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import platform
from collections.abc import Iterable
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cells.hive import Group, Health, Late, Readiness, Wiring, provide
from cells.hive.jobs import Jobs, Supervisor

FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Buckets in seconds: from half a millisecond, since a change usually takes a few."""
LAG_INTERVAL = 1.0
"""Seconds between two measurements: what an idle process wakes up for."""
LAG_DEGRADED = 1.0
"""Seconds of lag that health mentions: keepalives come a third of the hold time apart."""


class MetricsCollector(Protocol):
    """Metrics of state that exists anyway; the members of this group are read at each scrape."""

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called in the loop's thread."""


class Metrics:
    """All metrics of one program."""

    def __init__(
        self, jobs: Jobs, health: Health, collectors: Late[Group[MetricsCollector]]
    ) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_Collectors(collectors))
        self._health = health
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
        jobs.add("loop-lag", self._measure_lag)

    def render(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self.registry)

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


class _Collectors(Collector):
    def __init__(self, collectors: Late[Group[MetricsCollector]]) -> None:
        self._collectors = collectors

    def collect(self) -> Iterable[Metric]:
        for collector in self._collectors():
            yield from collector.collect()

    def describe(self) -> Iterable[Metric]:
        # Without this the registry would collect once at registration, before anything runs.
        return ()


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
        version = importlib.metadata.version("waggle-bgp")
        build.add_metric([version, platform.python_version()], 1)
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


WIRING = Wiring(
    provides=(Metrics,),
    invokes=(Metrics,),
    contributes=(provide(ProcessMetrics, as_=MetricsCollector),),
)
