"""The database: one immutable root of all tables, snapshots of it, and write transactions.

A snapshot is the root as it is: one attribute load, no lock, valid for as long as it is kept. A
write transaction locks the tables that it names, in the order of their names so that no two writers
wait for each other, builds new states of them, and puts them into the root all at once. After that,
with no lock held, watches fire and observables emit.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from statedb.changes import ChangeIterator, Logged
from statedb.errors import DuplicateTable, TableNotLocked, TransactionClosed
from statedb.index import Index, LpmIndex
from statedb.state import Path, TableState
from statedb.table import Table
from statedb.watch import TABLE, Place

T = TypeVar("T")

Written: TypeAlias = tuple[int, Path, Any, bool, Any]
"""Revision, primary path, row (the old one when deleted), deleted, the row that was replaced."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,40}")


class Snapshot:
    """All tables at one moment."""

    __slots__ = ("_root",)

    def __init__(self, root: tuple[TableState, ...]) -> None:
        self._root = root

    def state(self, table: Table[Any]) -> TableState:
        """Find a table's state; for this package only."""
        try:
            return self._root[table.slot]
        except IndexError:
            return table.empty()  # the table is younger than the snapshot


class WriteTxn:
    """Changes of the named tables that become visible together, or not at all.

    It reads like a snapshot of the moment it began, with its own writes. Made by `Database.write`;
    it belongs to one thread.
    """

    __slots__ = ("_closed", "_root", "_tables", "_touched", "_written", "base")

    def __init__(self, root: tuple[TableState, ...], tables: Iterable[Table[Any]]) -> None:
        self.base = root
        self._root = list(root)
        self._tables = frozenset(table.slot for table in tables)
        self._touched: set[int] = set()
        self._written: dict[Table[Any], list[Written]] = {}
        self._closed = False

    def state(self, table: Table[Any]) -> TableState:
        """Find a table's state as this transaction sees it; for this package only."""
        if self._closed:
            raise TransactionClosed
        return self._root[table.slot] if table.slot < len(self._root) else table.empty()

    def writable(self, table: Table[Any]) -> TableState:
        """Find a table's state, to be replaced; for this package only."""
        if self._closed:
            raise TransactionClosed
        if table.slot not in self._tables:
            raise TableNotLocked(table.name)
        return self._root[table.slot]

    def stage(self, table: Table[Any], state: TableState, written: Written | None) -> None:
        """Replace a table's state; for this package only."""
        self._root[table.slot] = state
        self._touched.add(table.slot)
        if written is not None:
            self._written.setdefault(table, []).append(written)

    def close(self) -> tuple[dict[int, TableState], dict[Table[Any], list[Written]]]:
        """End it; what it changed."""
        self._closed = True
        return {slot: self._root[slot] for slot in self._touched}, self._written


ReadTxn: TypeAlias = Snapshot | WriteTxn


def _log_error(error: BaseException) -> None:
    logging.getLogger("statedb").error("a subscriber failed", exc_info=error)


class Database:
    """A set of tables that are read and written together.

    ``on_error`` is told of exceptions in watches' callbacks and observables' subscribers; without
    it they are logged.
    """

    def __init__(self, on_error: Callable[[BaseException], None] = _log_error) -> None:
        self._root: tuple[TableState, ...] = ()
        self._commit_lock = threading.Lock()
        self._tables: dict[str, Table[Any]] = {}
        self._locks: dict[str, threading.Lock] = {}
        self.report = on_error

    def table(
        self,
        name: str,
        primary: Index[T],
        indexes: Iterable[Index[T] | LpmIndex[T]] = (),
    ) -> Table[T]:
        """Add a table; its primary index is unique whatever it says."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a table name: {_NAME.pattern}")
        with self._commit_lock:
            if name in self._tables:
                raise DuplicateTable(name)
            table = Table(self, len(self._root), name, primary, indexes)
            self._tables[name] = table
            self._locks[name] = threading.Lock()
            self._root = (*self._root, table.empty())
        return table

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """All tables, in the order in which they were added."""
        return tuple(self._tables.values())

    def snapshot(self) -> Snapshot:
        """See all tables as they are now."""
        return Snapshot(self._root)

    @contextmanager
    def write(self, *tables: Table[Any]) -> Iterator[WriteTxn]:
        """Write to these tables: committed when the block ends, aborted when it raises."""
        names = sorted({table.name for table in tables})
        for name in names:
            self._locks[name].acquire()
        try:
            txn = WriteTxn(self._root, tables)
            try:
                yield txn
            except BaseException:
                txn.close()
                raise
            states, written = txn.close()
            self._commit(states, written)
        finally:
            for name in reversed(names):
                self._locks[name].release()
        self._tell(states, written)

    def _commit(
        self, states: dict[int, TableState], written: dict[Table[Any], list[Written]]
    ) -> None:
        if not states:
            return
        with self._commit_lock:
            for table, entries in written.items():
                if table.log.followed:
                    table.log.append([Logged(*entry[:4]) for entry in entries])
            root = list(self._root)
            for slot, state in states.items():
                root[slot] = state
            self._root = tuple(root)

    def _tell(
        self, states: dict[int, TableState], written: dict[Table[Any], list[Written]]
    ) -> None:
        for table, entries in written.items():
            if table.watches:
                places: set[Place] = {TABLE}
                for _, path, row, _, old in entries:
                    places.update(table.places(row, path))
                    if old is not None:
                        places.update(table.places(old, path))
                table.watches.fire(places)
        for table in self._tables.values():
            if table.slot in states:
                if table not in written and table.watches:
                    table.watches.fire({TABLE})  # an initializer is done
                table.emit(states[table.slot].revision)

    def follow(self, table: Table[T]) -> ChangeIterator[T]:
        """Make a change iterator; `Table.changes` is its public name."""
        with self._commit_lock:
            iterator = ChangeIterator(table, table.log, self._root[table.slot])
            table.log.follow(iterator)
        return iterator

    def change_pending(self, table: Table[Any], name: str) -> None:
        """Add an initializer; `Table.register_initializer` is its public name."""
        with self._locks[table.name], self._commit_lock:
            root = list(self._root)
            state = root[table.slot]
            root[table.slot] = state._replace(pending=state.pending | {name})
            self._root = tuple(root)
