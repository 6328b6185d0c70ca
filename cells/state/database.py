"""The database cell: the one in-memory database that all tables live in.

It holds no table of its own; every room that has tables makes them in its own cell.
"""

from __future__ import annotations

from cells.hive import Wiring, provide
from cells.observability.metrics import MetricsCollector
from cells.state.table_metrics import TableMetrics
from statedb import Database


def make_database() -> Database:
    """Return the database. A function, as the compiled `Database` has no signature."""
    return Database()


WIRING = Wiring(
    provides=(make_database,),
    contributes=(provide(TableMetrics, as_=MetricsCollector),),
)
