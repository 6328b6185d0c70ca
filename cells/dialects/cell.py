"""Makes the cell of an API dialect, for an agent and for an operator.

The dialect itself is imported with the wiring of its cell: where it is on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cells.hive import Cell, Wiring
from reconcilers.dialect_entry import DialectEntry

if TYPE_CHECKING:
    from reconcilers.dialect import Dialect


class DialectCell(Cell, frozen=True, kw_only=True):
    """The cell of an API dialect."""

    entry: DialectEntry
    wiring: str = "cells.dialects.wiring"
    in_operator: bool

    @property
    def dialect(self) -> type[Dialect]:
        """The class; imports the dialect."""
        return self.entry.load()

    def wired(self) -> Wiring:
        """Return the constructors; imports the dialect."""
        from cells.dialects import wiring

        make = wiring.operator_wiring if self.in_operator else wiring.agent_wiring
        return make(self.entry)


def agent_cell(entry: DialectEntry) -> DialectCell:
    """Return the cell of a dialect in an agent."""
    return DialectCell(
        name=entry.name,
        description=f"The API dialect of {entry.title}.",
        options=entry.options,
        on_by_default=entry.on_by_default,
        needs=entry.feeds,
        entry=entry,
        in_operator=False,
    )


def operator_cell(entry: DialectEntry) -> DialectCell:
    """Return the cell of a dialect in an operator."""
    return DialectCell(
        name=entry.name,
        description=f"The API dialect of {entry.title}.",
        options=entry.operator_options,
        on_by_default=entry.on_by_default,
        needs=entry.feeds,
        entry=entry,
        in_operator=True,
    )
