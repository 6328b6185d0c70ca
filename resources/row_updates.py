"""Replaces the rows of a table, writing differences only: a change of a table is a change of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from statedb import Key, Table, WriteTxn

T = TypeVar("T")


def replace_all(txn: WriteTxn, table: Table[T], rows: Iterable[T]) -> int:
    """Replace the rows of a table by these, writing differences only; returns their number."""
    key_of = primary_key(table)
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


def replace_some(txn: WriteTxn, table: Table[T], gone: Iterable[T], new: Iterable[T]) -> None:
    """Delete some rows of a table, and write others: differences that the caller has found."""
    key_of = primary_key(table)
    for row in gone:
        table.delete(txn, key_of(row))
    for row in new:
        table.upsert(txn, row)


def primary_key(table: Table[T]) -> Callable[[T], Key]:
    """Return the function from a row of a table to its primary key."""
    return table.primary.key or (lambda row: next(iter(table.primary.keys(row))))
