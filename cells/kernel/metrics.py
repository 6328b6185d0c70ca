"""Metrics of the routes in the kernel, read at each scrape."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from reconcilers.kernel.reconciler import KernelReconciler
from reconcilers.kernel.wanted_tables import FAMILIES


class KernelMetrics:
    """Collects the metrics of the routes in the kernel."""

    def __init__(self, kernel: KernelReconciler) -> None:
        self._kernel = kernel

    def collect(self) -> Iterable[Metric]:
        """Yield all of them."""
        installed, wanted = self._kernel.installed, self._kernel.wanted_tables
        labels = ["table", "family"]
        best = GaugeMetricFamily(
            "waggle_kernel_wanted_routes",
            "Prefixes with best paths of instances whose routes are installed.",
            labels=labels,
        )
        held = GaugeMetricFamily(
            "waggle_kernel_installed_routes", "Routes of ours in the kernel.", labels=labels
        )
        for table in wanted.tables:
            names = [str(table.table), str(FAMILIES[table.family])]
            best.add_metric(names, wanted.count(table))
            held.add_metric(names, installed.count(table))
        yield best
        yield held
        failed = GaugeMetricFamily(
            "waggle_kernel_failed_routes",
            "Routes that the kernel does not have, by reason.",
            labels=["reason"],
        )
        for reason, count in sorted(installed.failures.counts().items()):
            failed.add_metric([str(reason)], count)
        yield failed
        yield GaugeMetricFamily(
            "waggle_kernel_pending_routes",
            "Changes of routes that the writer has not confirmed.",
            value=installed.pending,
        )
        counts = installed.counts
        for name, text, value in (
            ("batches", "Batches that the writer has confirmed.", counts.batches),
            ("batch_routes", "Routes of these batches.", counts.routes),
            ("messages", "Messages of the writer to the kernel.", counts.written),
            ("writer_seconds", "Time of the writer for batches.", counts.seconds),
        ):
            yield CounterMetricFamily(f"waggle_kernel_{name}", text, value=value)
        changed = CounterMetricFamily(
            "waggle_kernel_changed_routes",
            "Routes that the kernel or another program changed, by how it was noticed.",
            labels=["cause"],
        )
        for cause, count in sorted(counts.changed.items()):
            changed.add_metric([str(cause)], count)
        yield changed
