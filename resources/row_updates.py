"""Replaces the rows of a table, writing differences only: a change of a table is a change of a row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from statedb import Key, Table, WriteTxn

T = TypeVar("T")


def replace_all(txn: WriteTxn, table: Table[T], rows: Iterable[T]) -> int:
    """Replace the rows of a table by these, writing differences only; returns their number."""
    key_of = table.primary.key or (lambda row: next(iter(table.primary.keys(row))))
    wanted: dict[Key, T] = {key_of(row): row for row in rows}
    if not table.count(txn):
        if wanted:
            table.fill(txn, wanted.values())
        return len(wanted)
    present: dict[Key, T] = {key_of(row): row for row in table.all(txn)}
    changes = 0
    for key in present:
        if key not in wanted:
            table.delete(txn, key)
            changes += 1
    for key, row in wanted.items():
        if present.get(key) != row:
            table.upsert(txn, row)
            changes += 1
    return changes
