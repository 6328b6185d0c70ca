"""The database cell: the one in-memory database that all tables live in.

It holds no table of its own; every room that has tables makes them in its own cell.
"""

from __future__ import annotations

from cells.hive import Wiring, provide
from cells.observability.metrics import MetricsCollector
from cells.state.table_metrics import TableMetrics
from statedb import Database

WIRING = Wiring(
    provides=(Database,),
    contributes=(provide(TableMetrics, as_=MetricsCollector),),
)
