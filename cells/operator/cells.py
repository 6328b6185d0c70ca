"""The cells of ``waggle-operator``, in the order in which they are listed and, where free, started."""

from __future__ import annotations

from cells import database, http, logging, metrics, resources, telemetry
from cells.hive import Cell
from cells.operator.cell import CELL as OPERATOR
from cells.operator.source import CELL as SOURCE


def operator_cells(*dialects: Cell) -> tuple[Cell, ...]:
    """Return the cells of an operator with the cells of these API dialects."""
    return (
        logging.CELL,
        telemetry.CELL,
        metrics.CELL,
        http.CELL,
        database.CELL,
        resources.CELL,
        *dialects,
        SOURCE,
        OPERATOR,
    )
