"""The cells of ``waggle-agent``, in the order in which they are listed and, where free, started.

Adding a cell is a line here and a file beside it. This module decides nothing else.
"""

from __future__ import annotations

from cells import http, logging, metrics, telemetry
from cells.hive import Cell

CELLS: tuple[Cell, ...] = (
    logging.CELL,
    telemetry.CELL,
    metrics.CELL,
    http.CELL,
)
