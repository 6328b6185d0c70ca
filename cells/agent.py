"""The cells of ``waggle-agent``, in the order in which they are listed and, where free, started.

Adding a cell is a declaration, a line here, and a file with its wiring. This module decides nothing
else; the API dialects are the program's choice.
"""

from __future__ import annotations

from cells import declarations as cells
from cells.dialects.cell import agent_cell
from cells.hive import Cell
from reconcilers.dialect_entry import DialectEntry


def agent_cells(*dialects: DialectEntry) -> tuple[Cell, ...]:
    """Return the cells of an agent with the cells of these API dialects."""
    return (
        cells.LOGGING,
        cells.TELEMETRY,
        cells.SPANS,
        cells.METRICS,
        cells.HTTP,
        cells.NODE,
        cells.DATABASE,
        cells.RESOURCES,
        *map(agent_cell, dialects),
        cells.MANIFESTS,
        cells.KUBERNETES,
        cells.SNAPSHOT,
        cells.UNUSED_OBJECTS,
        cells.HOST,
        cells.CLAIMS,
        cells.LOCAL_OPERATOR,
        cells.INTENT,
        cells.SPEAKER,
        cells.kernel_cell([entry.name for entry in dialects if entry.installs_routes]),
        cells.BFD,
        cells.APPLY,
        cells.HISTORY,
        cells.READINESS,
        cells.STATUS,
        cells.REPORT,
        cells.API,
        cells.PAGE,
    )
