"""Writing desired rows: only those that differ, so that a table's changes are real changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from statedb import Key, Table, WriteTxn

T = TypeVar("T")


def make(txn: WriteTxn, table: Table[T], rows: Iterable[T], present: Iterable[T]) -> int:
    """Turn the rows that are present into the wanted ones; how many were written or deleted."""
    changed = 0
    wanted: dict[Key, T] = {next(iter(table.primary.keys(row))): row for row in rows}
    for row in present:
        key = next(iter(table.primary.keys(row)))
        if key not in wanted:
            table.delete(txn, key)
            changed += 1
    for key, row in wanted.items():
        if table.get(txn, key) != row:
            table.upsert(txn, row)
            changed += 1
    return changed


def make_all(txn: WriteTxn, table: Table[T], rows: Iterable[T]) -> int:
    """Make a table hold exactly these rows."""
    return make(txn, table, rows, list(table.all(txn)))
