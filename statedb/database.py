"""The database: one immutable root of all tables, snapshots of it, and write transactions.

A snapshot is the present root: one attribute load, no lock, valid as long as it is referenced. A write
transaction locks the tables that it names, in the order of their names so that writers cannot
deadlock, builds new states of them, and replaces all of them in the root at once. Then, with no lock
held, observables emit.
"""

from __future__ import annotations

import logging
import operator
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, compress, repeat
from typing import Any, TypeAlias, TypeVar

from statedb.changes import ChangeIterator, LogEntry
from statedb.errors import DuplicateTable, TableNotLocked, TransactionClosed
from statedb.index_declaration import Index
from statedb.state import TableState
from statedb.table import Table

T = TypeVar("T")

Revisions: TypeAlias = tuple[int, ...]
"""The revisions of the tables of a snapshot, in the order of the tables' addition."""

_slot = operator.attrgetter("slot")
_revision = operator.attrgetter("revision")
_name = operator.attrgetter("name")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,40}")


class Snapshot:
    """All tables at one point in time."""

    __slots__ = ("__weakref__", "root")

    def __init__(self, root: tuple[TableState, ...]) -> None:
        self.root = root
        """The states of the tables, by slot; internal to this package."""

    @property
    def revisions(self) -> Revisions:
        """The revisions of all tables. Unlike the snapshot they keep no row."""
        return tuple(map(_revision, self.root))

    def state(self, table: Table[Any]) -> TableState:
        """Return a table's state: the same object as long as the table has not changed.

        What is in it is internal to this package.
        """
        try:
            return self.root[table.slot]
        except IndexError:
            return table.empty()  # the table was added after the snapshot

    def states(self, tables: Iterable[Table[Any]]) -> list[TableState]:
        """Return the states of some tables, all of which the snapshot has (`state`)."""
        return list(map(self.root.__getitem__, map(_slot, tables)))


class WriteTxn:
    """Writes to named tables that become visible together, or not at all.

    Reads see a snapshot from its beginning, with its own writes. Created by `Database.write`; belongs
    to one thread.
    """

    __slots__ = ("_closed", "_root", "_tables", "_touched", "_written")

    def __init__(self, root: tuple[TableState, ...], tables: Iterable[Table[Any]]) -> None:
        self._root = list(root)
        self._tables = frozenset(map(_slot, tables))
        self._touched: set[int] = set()
        self._written: dict[Table[Any], list[LogEntry]] = {}
        self._closed = False

    def state(self, table: Table[Any]) -> TableState:
        """Return a table's state with the writes of this transaction (`Snapshot.state`)."""
        if self._closed:
            raise TransactionClosed
        return self._root[table.slot] if table.slot < len(self._root) else table.empty()

    def states(self, tables: Iterable[Table[Any]]) -> list[TableState]:
        """Return the states of some tables, all of which the transaction has (`state`)."""
        if self._closed:
            raise TransactionClosed
        return list(map(self._root.__getitem__, map(_slot, tables)))

    def writable(self, table: Table[Any]) -> TableState:
        """Return the state of a locked table; internal to this package.

        Raises `TableNotLocked` or `TransactionClosed`.
        """
        if self._closed:
            raise TransactionClosed
        if table.slot not in self._tables:
            raise TableNotLocked(table.name)
        return self._root[table.slot]

    def stage(self, table: Table[Any], state: TableState, written: LogEntry | None) -> None:
        """Replace a table's state; internal to this package."""
        self._root[table.slot] = state
        self._touched.add(table.slot)
        if written is not None:
            self._written.setdefault(table, []).append(written)

    def stage_all(self, table: Table[Any], state: TableState, written: list[LogEntry]) -> None:
        """Replace a table's state as `stage`, with several written rows."""
        self._root[table.slot] = state
        self._touched.add(table.slot)
        self._written.setdefault(table, []).extend(written)

    def snapshot(self) -> Snapshot:
        """Return a snapshot with the writes so far, whether they are committed later or not."""
        return Snapshot(tuple(self._root))

    def close(self) -> tuple[dict[int, TableState], dict[Table[Any], list[LogEntry]]]:
        """End the transaction; return the new states and the written rows."""
        self._closed = True
        return {slot: self._root[slot] for slot in self._touched}, self._written


ReadTxn: TypeAlias = Snapshot | WriteTxn


def _log_error(error: BaseException) -> None:
    logging.getLogger("statedb").error("a subscriber failed", exc_info=error)


class Database:
    """A set of tables with common snapshots and transactions.

    ``on_error`` is called with exceptions of observables' subscribers; by
    default they are logged.
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
        indexes: Iterable[Index[T]] = (),
    ) -> Table[T]:
        """Add a table; the primary index is always unique.

        Raises `DuplicateTable`, and ValueError for an invalid name.
        """
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
        """All tables, in the order of their addition."""
        return tuple(self._tables.values())

    def snapshot(self) -> Snapshot:
        """Return a snapshot of all tables."""
        return Snapshot(self._root)

    def changed(self, since: Revisions | None, until: Snapshot) -> frozenset[Table[Any]]:
        """Return the tables with other revisions in a snapshot than then; since None all tables."""
        if since is None:
            return frozenset(self._tables.values())
        # A table that was added since then had no rows.
        differs = map(operator.ne, chain(since, repeat(0)), map(_revision, until.root))
        return frozenset(compress(self._tables.values(), differs))

    @contextmanager
    def write(self, *tables: Table[Any]) -> Iterator[WriteTxn]:
        """Begin a transaction on tables; commit at the end of the block, abort if it raises."""
        names = sorted(set(map(_name, tables)))
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
            for name in names[::-1]:
                self._locks[name].release()
        self._notify(states)

    def trial(self, *tables: Table[Any]) -> WriteTxn:
        """Return a transaction on tables that is never committed, to see what writes would result in.

        It locks nothing, and no other reader sees it. A later commit has its revisions
        again, with other rows.
        """
        return WriteTxn(self._root, tables)

    def _commit(
        self, states: dict[int, TableState], written: dict[Table[Any], list[LogEntry]]
    ) -> None:
        if not states:
            return
        with self._commit_lock:
            for table, entries in written.items():
                if table.log.followed:
                    table.log.append(entries)
            root = list(self._root)
            for slot, state in states.items():
                root[slot] = state
            self._root = tuple(root)

    def _notify(self, states: dict[int, TableState]) -> None:
        """Emit the observables of the tables that a commit changed."""
        for table in self._tables.values():
            if table.slot in states:
                table.emit(states[table.slot].revision)

    def follow(self, table: Table[T]) -> ChangeIterator[T]:
        """Create a change iterator; the public method is `Table.changes`."""
        with self._commit_lock:
            iterator = ChangeIterator(table, table.log, self._root[table.slot])
            table.log.follow(iterator)
        return iterator

    def change_pending(self, table: Table[Any], name: str) -> None:
        """Add an initializer; the public method is `Table.register_initializer`."""
        with self._locks[table.name], self._commit_lock:
            root = list(self._root)
            state = root[table.slot]
            root[table.slot] = state._replace(pending=state.pending | {name})
            self._root = tuple(root)
