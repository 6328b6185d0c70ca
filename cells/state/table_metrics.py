"""Metrics of the tables, read at each scrape."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from statedb import Database


class TableMetrics:
    """The sizes and revisions of the tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics of all tables."""
        rows = GaugeMetricFamily("waggle_table_rows", "Rows of a table.", labels=["table"])
        revisions = CounterMetricFamily(
            "waggle_table_revision", "Inserts, updates and deletions of a table.", labels=["table"]
        )
        pending = GaugeMetricFamily(
            "waggle_table_unread_changes",
            "Changes of a table that one of its readers has not read.",
            labels=["table"],
        )
        snapshot = self._database.snapshot()
        for table in self._database.tables:
            rows.add_metric([table.name], table.count(snapshot))
            revisions.add_metric([table.name], table.revision(snapshot))
            pending.add_metric([table.name], len(table.log))
        yield from (rows, revisions, pending)
