"""Makes the cell of an API dialect, for an agent and for an operator.

The cell contributes the dialect's kinds, so that tables and sources have them, and the dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from cells.hive import Cell, SettingError
from cells.hive.cell import Constructor
from reconcilers.dialect import Dialect
from resources.kind import Kind
from resources.option_declarations import InvalidOption, Options
from resources.tables import Tables


class DialectKinds(msgspec.Struct, frozen=True):
    """The kinds of an enabled dialect."""

    kinds: tuple[Kind[Any], ...]
    """Those that an agent reads."""
    cluster_kinds: tuple[Kind[Any], ...]
    """Those that an operator reads."""


class DialectCell(Cell, frozen=True, kw_only=True):
    """The cell of an API dialect."""

    dialect: type[Dialect]


def agent_cell(dialect: type[Dialect], *, enabled: bool = False) -> DialectCell:
    """Return the cell of a dialect in an agent; ``enabled``: it is on by default."""
    return _cell(dialect, dialect.options_type, enabled)


def operator_cell(dialect: type[Dialect], *, enabled: bool = False) -> DialectCell:
    """Return the cell of a dialect in an operator; ``enabled``: it is on by default."""
    return _cell(dialect, dialect.operator_options_type, enabled)


def _cell(dialect: type[Dialect], options: type[Options], enabled: bool) -> DialectCell:
    return DialectCell(
        name=dialect.name,
        description=f"The API dialect of {dialect.title}.",
        options=options,
        contributes=(_kinds(dialect), _constructor(dialect)),
        on_by_default=enabled,
        dialect=dialect,
    )


def _kinds(dialect: type[Dialect]) -> Constructor:
    def kinds() -> DialectKinds:
        return DialectKinds(dialect.kinds, dialect.cluster_kinds)

    return kinds


def _constructor(dialect: type[Dialect]) -> Constructor:
    def make(tables: Tables, options: Options) -> Dialect:
        try:
            return dialect(tables, options)
        except InvalidOption as error:
            raise SettingError("", error.flag, str(error)) from None

    return make


def disabled(cells: Sequence[Cell], enabled: dict[str, bool]) -> list[type[Dialect]]:
    """Return the dialects whose cells are off."""
    return [
        cell.dialect for cell in cells if isinstance(cell, DialectCell) and not enabled[cell.name]
    ]
