"""The cells of ``waggle-operator``, in the order in which they are listed and, where free, started."""

from __future__ import annotations

from cells import declarations as cells
from cells.dialects.cell import operator_cell
from cells.hive import Cell
from reconcilers.dialect_entry import DialectEntry


def operator_cells(*dialects: DialectEntry) -> tuple[Cell, ...]:
    """Return the cells of an operator with the cells of these API dialects."""
    return (
        cells.LOGGING,
        cells.TELEMETRY,
        cells.METRICS,
        cells.HTTP,
        cells.DATABASE,
        cells.RESOURCES,
        *map(operator_cell, dialects),
        cells.OPERATOR_SOURCE,
        cells.OPERATOR,
        cells.WEBHOOK,
    )
