"""Cells with other constructors, and entries of the dialects that tests declare."""

from __future__ import annotations

from typing import Any

import msgspec

from cells.hive import Cell, Provider, provide
from reconcilers.dialect import Dialect
from reconcilers.dialect_entry import DialectEntry, Subcommand
from resources.kind import Kinds


def supply(value: object, *, as_: Any = None) -> Provider:  # noqa: ANN401 - any type form
    """Return the provider of a value that exists already, by its class or by ``as_``."""

    def supplied() -> object:
        return value

    supplied.__annotations__["return"] = type(value)
    return provide(supplied, as_=as_)


def rewired(cell: Cell, **constructors: Any) -> Cell:  # noqa: ANN401 - of Wiring
    """Return a cell with these constructors in place of its own."""
    wiring = msgspec.structs.replace(cell.wired(), **constructors)
    return msgspec.structs.replace(cell, wiring=wiring)


def entry(
    dialect: type[Dialect], *subcommands: Subcommand, on_by_default: bool = False
) -> DialectEntry:
    """Return the entry of a dialect that is imported already; all its own kinds are counted."""
    kinds = tuple(k for k in Kinds(dialect.kinds, dialect.cluster_kinds) if k.custom)
    return DialectEntry(
        name=dialect.name,
        title=dialect.title,
        load=lambda: dialect,
        kinds=lambda: kinds,
        options=dialect.options_type,
        operator_options=dialect.operator_options_type,
        subcommands=subcommands,
        feeds=dialect.feeds,
        on_by_default=on_by_default,
    )
