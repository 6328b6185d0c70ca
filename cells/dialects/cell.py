"""Makes the cell of an API dialect, for an agent and for an operator.

The dialect itself is imported with the wiring of its cell: where it is on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cells.hive import Cell, Wiring
from reconcilers.dialect_entry import DialectEntry
from resources.option_declarations import Options

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
        from cells.dialects.wiring import wiring_of

        return wiring_of(self.entry, in_operator=self.in_operator)


def agent_cell(entry: DialectEntry) -> DialectCell:
    """Return the cell of a dialect in an agent."""
    return _cell(entry, entry.options, in_operator=False)


def operator_cell(entry: DialectEntry) -> DialectCell:
    """Return the cell of a dialect in an operator."""
    return _cell(entry, entry.operator_options, in_operator=True)


def _cell(entry: DialectEntry, options: type[Options], *, in_operator: bool) -> DialectCell:
    return DialectCell(
        name=entry.name,
        description=f"The API dialect of {entry.title}.",
        options=options,
        on_by_default=entry.on_by_default,
        needs=entry.feeds,
        entry=entry,
        in_operator=in_operator,
    )
