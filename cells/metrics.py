"""The metrics cell: a registry of its own, the measurements that cells make, and the loop's lag.

Names follow Prometheus' conventions (base units, ``_total``) and never change. Labels hold names
of our own objects, never text that a peer chose. State that exists anyway (sessions, restarts) is
read when somebody scrapes; only durations are recorded as they happen.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import platform
from collections.abc import Callable, Iterable

from dependency_injector import providers
from dependency_injector.containers import DeclarativeContainer
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cells.hive import Cell, Health, Hive, Jobs

FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Buckets in seconds: from half a millisecond, since a change usually takes a few."""
LAG_INTERVAL = 0.5
LAG_DEGRADED = 1.0
"""Seconds of lag that health mentions: keepalives come a third of the hold time apart."""


class Metrics:
    """All metrics of one agent."""

    def __init__(self, jobs: Jobs, health: Health, hive: Hive) -> None:
        self.registry = CollectorRegistry()
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
            "How much later than asked the event loop woke a sleeping task.",
            buckets=FAST,
            registry=self.registry,
        )
        self.collect(lambda: _process(hive))
        jobs.add("loop-lag", self._measure_lag)

    def collect(self, function: Callable[[], Iterable[Metric]]) -> None:
        """Add metrics that are read when somebody scrapes; called in the loop's thread."""
        self.registry.register(_Reader(function))

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


class _Reader(Collector):
    def __init__(self, function: Callable[[], Iterable[Metric]]) -> None:
        self._function = function

    def collect(self) -> Iterable[Metric]:
        return self._function()

    def describe(self) -> Iterable[Metric]:
        # Without this the registry would collect once at registration, before anything runs.
        return ()


def _process(hive: Hive) -> Iterable[Metric]:
    build = GaugeMetricFamily(
        "waggle_build_info", "Constantly 1; the labels say what runs.", labels=["version", "python"]
    )
    build.add_metric([importlib.metadata.version("waggle-bgp"), platform.python_version()], 1)
    yield build
    restarts = CounterMetricFamily(
        "waggle_task_restarts", "Restarts of a failed job.", labels=["task"]
    )
    for name, count in hive.supervisor.restarts.items():
        restarts.add_metric([name], count)
    yield restarts
    ready = GaugeMetricFamily("waggle_ready", "Whether the agent calls itself ready.")
    ready.add_metric([], hive.readiness.ready)
    yield ready


class MetricsContainer(DeclarativeContainer):
    """The graph of the metrics cell."""

    jobs = providers.Dependency(instance_of=Jobs)
    health = providers.Dependency(instance_of=Health)
    hive = providers.Dependency(instance_of=Hive)
    metrics = providers.Singleton(Metrics, jobs, health, hive)
    invokes = providers.List(metrics)


CELL = Cell(
    name="metrics",
    description="Measurements for Prometheus; the http cell serves them.",
    container=MetricsContainer,
)
