"""Replaces the rows of a table, writing differences only: a change of a table is a change of a row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from statedb import Key, Table, WriteTxn

T = TypeVar("T")


def replace_all(txn: WriteTxn, table: Table[T], rows: Iterable[T]) -> int:
    """Make a table hold exactly these rows; returns the number of rows written or deleted."""
    wanted: dict[Key, T] = {next(iter(table.primary.keys(row))): row for row in rows}
    changes = 0
    for row in list(table.all(txn)):
        key = next(iter(table.primary.keys(row)))
        if key not in wanted:
            table.delete(txn, key)
            changes += 1
    for key, row in wanted.items():
        if table.get(txn, key) != row:
            table.upsert(txn, row)
            changes += 1
    return changes
