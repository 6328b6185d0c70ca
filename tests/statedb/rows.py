"""A small row type and table for the tests of the database."""

from __future__ import annotations

from typing import NamedTuple

from statedb import Database, Index, Table


class Row(NamedTuple):
    """One row."""

    space: str
    name: str
    colors: tuple[str, ...] = ()
    serial: int | None = None


def rows_table(db: Database, name: str = "rows") -> Table[Row]:
    """Make a table with an index of every kind."""
    return db.table(
        name,
        Index("key", lambda row: (row.space, row.name)),
        [
            Index("space", lambda row: row.space),
            Index("color", keys=lambda row: [(row.space, color) for color in row.colors]),
            Index(
                "serial",
                keys=lambda row: [] if row.serial is None else [row.serial],
                unique=True,
            ),
        ],
    )


def put(db: Database, table: Table[Row], *rows: Row) -> None:
    """Write rows in one transaction."""
    with db.write(table) as txn:
        for row in rows:
            table.upsert(txn, row)
