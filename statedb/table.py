"""A typed table: reads of a snapshot, writes in a transaction, changes, an Observable.

The table object holds no rows: each read takes the snapshot or transaction to read, so all reads of one
snapshot are consistent, over all tables. Rows must be immutable. Writing an equal row is a write with
a new revision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from statedb.changes import ChangeIterator, ChangeLog, LogEntry
from statedb.errors import UniqueViolation, UnknownIndex
from statedb.index_declaration import Index, Key, as_path
from statedb.state import (
    EMPTY,
    Change,
    Path,
    TableState,
    Tree,
    check_arity,
    group_add,
    group_remove,
    leaves,
    tree_delete,
    tree_get,
    tree_of,
    tree_set,
)

if TYPE_CHECKING:
    from reactivex import Observable

    from statedb.database import Database, ReadTxn, WriteTxn

T = TypeVar("T")

_row = attrgetter("row")
_revision = attrgetter("revision")

Initializer: TypeAlias = "Callable[[WriteTxn], None]"
"""To be called in a transaction of the table when its initial rows are complete."""


IndexKeys: TypeAlias = tuple[tuple[Path, ...], ...]
"""The keys of one row, in the order of the table's indexes."""


class Table(Generic[T]):
    """One table of a `Database`; created by `Database.table`."""

    def __init__(
        self,
        database: Database,
        slot: int,
        name: str,
        primary: Index[T],
        indexes: Iterable[Index[T]],
    ) -> None:
        self.name = name
        self.slot = slot
        """The table's position in every snapshot."""
        self.primary = primary
        self.log = ChangeLog()
        self._database = database
        self._indexes = list(indexes)
        self._order = {index.name: i for i, index in enumerate((primary, *self._indexes))}
        self._signal: Any = None

    def __repr__(self) -> str:
        """Return the table's name."""
        return f"<Table {self.name}>"

    def empty(self) -> TableState:
        """Return the state of the empty table."""
        return TableState(
            revision=0,
            size=0,
            primary=EMPTY,
            indexes=(EMPTY,) * len(self._indexes),
            arities=(0,) * (1 + len(self._indexes)),
            pending=frozenset(),
        )

    # Reads

    def get(self, txn: ReadTxn, key: Key) -> T | None:
        """Return the row with a primary key, or None."""
        path = key if isinstance(key, tuple) else (key,)
        change = tree_get(txn.state(self).primary, path)
        return change.row if isinstance(change, Change) else None

    def all(self, txn: ReadTxn) -> Iterator[T]:
        """Iterate over all rows, in no particular order."""
        state = txn.state(self)
        if not state.size:
            return iter(())
        # Most tables have keys of one component.
        flat = state.arities[0] == 1
        return map(
            _row, state.primary.values() if flat else leaves(state.primary, state.arities[0])
        )

    def count(self, txn: ReadTxn) -> int:
        """Return the number of rows."""
        return txn.state(self).size

    def revision(self, txn: ReadTxn) -> int:
        """Return the table's revision: each insert, update and delete increases it by one."""
        return txn.state(self).revision

    def row_revision(self, txn: ReadTxn, key: Key) -> int | None:
        """Return the table's revision of the last write of a row, or None without the row."""
        change = tree_get(txn.state(self).primary, as_path(key))
        return change.revision if isinstance(change, Change) else None

    def revisions(self, txn: ReadTxn) -> Iterator[int]:
        """Iterate over the revisions of all rows, in no particular order."""
        state = txn.state(self)
        return map(_revision, leaves(state.primary, state.arities[0])) if state.size else iter(())

    def find(self, txn: ReadTxn, index: str, key: Key) -> Iterator[T]:
        """Iterate over the rows with a whole key in an index. Raises `UnknownIndex`."""
        state = txn.state(self)
        path = as_path(key)
        position = self._position(index)
        whole = len(path) == state.arities[position]
        return self._below(state, position, path) if whole and state.size else iter(())

    def prefix(self, txn: ReadTxn, index: str, prefix: Key) -> Iterator[T]:
        """Iterate over the rows whose key in an index starts with components.

        Raises `UnknownIndex`.
        """
        state, position = txn.state(self), self._position(index)
        return self._below(state, position, as_path(prefix)) if state.size else iter(())

    def _position(self, index: str) -> int:
        """Return the position of an index in the arities: 0 is the primary one."""
        position = self._order.get(index)
        if position is None:
            raise UnknownIndex(self.name, index)
        return position

    def _below(self, state: TableState, position: int, path: Path) -> Iterator[T]:
        depth = state.arities[position] - len(path)
        if position:
            return self._of_index(state, position, path, depth)
        tree = tree_get(state.primary, path)
        if tree is None:
            return iter(())
        return map(_row, tree.values() if depth == 1 else leaves(tree, depth))

    def _of_index(self, state: TableState, position: int, path: Path, depth: int) -> Iterator[T]:
        tree = tree_get(state.indexes[position - 1], path)
        if tree is None or not state.arities[position]:
            return
        if self._indexes[position - 1].unique:
            for member in leaves(tree, depth):
                yield tree_get(state.primary, member).row
            return
        primary = state.primary
        if depth == 0:
            for member in tree:
                leaf: Any = primary
                for component in member:
                    leaf = leaf[component]
                yield leaf.row
            return
        # A row of a multi-key index may have several keys with one prefix: it is returned once.
        paths: set[Path] = set()
        for group in leaves(tree, depth):
            for member in group:
                if member not in paths:
                    paths.add(member)
                    yield tree_get(primary, member).row

    # Writes

    def upsert(self, txn: WriteTxn, row: T) -> T | None:
        """Insert a row, or replace the row with its primary key; return the replaced row or None.

        Raises `UniqueViolation` or `KeyShape`, without any change.
        """
        state = txn.writable(self)
        path = self._path(row)
        old = tree_get(state.primary, path) if state.size else None
        self._write(txn, state, path, old, row)
        return old.row if old is not None else None

    def fill(self, txn: WriteTxn, rows: Iterable[T]) -> None:
        """Insert rows with different primary keys into an empty table, as `upsert` of each does.

        Takes half of its time. Raises `UniqueViolation` or `KeyShape`, without any change.
        """
        state = txn.writable(self)
        if state.size:
            raise ValueError(f"the table {self.name} is not empty")
        arities = [0] * len(state.arities)
        primary: list[tuple[Path, Change[T]]] = []
        secondary: list[dict[Any, Path]] = [{} for _ in self._indexes]
        entries: list[LogEntry] = []
        for revision, row in enumerate(rows, state.revision + 1):
            path = self._path(row)
            arities[0] = check_arity(self.name, self.primary.name, path, arities[0])
            for i, (index, keys) in enumerate(
                zip(self._indexes, self._keys_of(row), strict=True), 1
            ):
                for key in keys:
                    arities[i] = check_arity(self.name, index.name, key, arities[i])
                    if index.unique and key in secondary[i - 1]:
                        raise UniqueViolation(self.name, index.name, key)
                    # The members of a group are its leaves: one level more.
                    secondary[i - 1][key if index.unique else (*key, path)] = path
            change = Change(row, revision, False)
            primary.append((path, change))
            entries.append(LogEntry(path, change, None))
        trees = [
            tree_of(members.items() if index.unique else zip(members, repeat(None)))
            for index, members in zip(self._indexes, secondary, strict=True)
        ]
        revision = state.revision + len(entries)
        filled = TableState(
            revision, len(entries), tree_of(primary), tuple(trees), tuple(arities), state.pending
        )
        txn.stage_all(self, filled, entries)

    def delete(self, txn: WriteTxn, key: Key) -> T | None:
        """Delete the row with a primary key; return it, or None if there is none."""
        state = txn.writable(self)
        path = as_path(key)
        old = tree_get(state.primary, path)
        if not isinstance(old, Change):
            return None
        self._erase(txn, state, path, old)
        row: T = old.row
        return row

    def delete_all(self, txn: WriteTxn) -> int:
        """Delete all rows; return their number."""
        keys = [self._path(row) for row in self.all(txn)]
        for key in keys:
            self.delete(txn, key)
        return len(keys)

    def _path(self, row: T) -> Path:
        if self.primary.key is None:
            (key,) = self.primary.keys(row)
        else:
            key = self.primary.key(row)
        return key if isinstance(key, tuple) else (key,)

    def _keys_of(self, row: T) -> IndexKeys:
        of_indexes = []
        for index in self._indexes:
            keys = [key if isinstance(key, tuple) else (key,) for key in index.keys(row)]
            of_indexes.append(tuple(keys if len(keys) < 2 else dict.fromkeys(keys)))
        return tuple(of_indexes)

    def _write(
        self, txn: WriteTxn, state: TableState, path: Path, old: Change[T] | None, row: T
    ) -> None:
        arities, trees = state.arities, state.indexes
        if not path or len(path) != arities[0]:
            arity = check_arity(self.name, self.primary.name, path, arities[0])
            arities = (arity, *arities[1:])
        if self._indexes:
            arities, trees = self._indexed(arities, trees, path, old, row)
        revision = state.revision + 1
        change = Change(row, revision, False)
        txn.stage(
            self,
            TableState(
                revision,
                state.size + (old is None),
                tree_set(state.primary, path, change),
                trees,
                arities,
                state.pending,
            ),
            LogEntry(path, change, old),
        )

    def _indexed(
        self,
        arities: tuple[int, ...],
        trees: tuple[Tree, ...],
        path: Path,
        old: Change[T] | None,
        row: T,
    ) -> tuple[tuple[int, ...], tuple[Tree, ...]]:
        """Return the arities, and the indexes with a row in place of another row."""
        lengths, indexes = list(arities), list(trees)
        after = self._keys_of(row)
        before = self._keys_of(old.row) if old is not None else None
        # All checks come before the first change.
        for i, index in enumerate(self._indexes):
            for key in after[i]:
                if not key or len(key) != lengths[1 + i]:
                    lengths[1 + i] = check_arity(self.name, index.name, key, lengths[1 + i])
                if index.unique and tree_get(indexes[i], key) not in (None, path):
                    raise UniqueViolation(self.name, index.name, key)
        if before != after:
            if before is not None:
                self._unindex(indexes, before, path)
            for i, index in enumerate(self._indexes):
                for key in after[i]:
                    indexes[i] = (
                        tree_set(indexes[i], key, path)
                        if index.unique
                        else group_add(indexes[i], key, path)
                    )
        return tuple(lengths), tuple(indexes)

    def _erase(self, txn: WriteTxn, state: TableState, path: Path, old: Change[T]) -> None:
        indexes = list(state.indexes)
        self._unindex(indexes, self._keys_of(old.row), path)
        revision = state.revision + 1
        txn.stage(
            self,
            state._replace(
                revision=revision,
                size=state.size - 1,
                primary=tree_delete(state.primary, path),
                indexes=tuple(indexes),
            ),
            LogEntry(path, Change(old.row, revision, True), old),
        )

    def _unindex(self, indexes: list[Any], keys: IndexKeys, path: Path) -> None:
        for i, index in enumerate(self._indexes):
            for key in keys[i]:
                indexes[i] = (
                    tree_delete(indexes[i], key)
                    if index.unique
                    else group_remove(indexes[i], key, path)
                )

    # Changes, the Observable

    def changes(self, database: Database) -> ChangeIterator[T]:
        """Return a change iterator: all rows first, then the changes."""
        return database.follow(self)

    @property
    def observable(self) -> Observable[int]:
        """Emits the table's revision after each commit that changed it: a signal, no rows.

        Subscribers are called in the committing thread, after the commit is visible, with no lock
        held. An exception in one goes to the database's error handler; it affects neither the other
        subscribers nor the writer.
        """
        return self._signals().observable  # type: ignore[no-any-return]  # created lazily

    def emit(self, revision: int) -> None:
        """Emit a revision to the Observable's subscribers; called by the database after a commit."""
        if self._signal is not None:
            self._signal.emit(revision)

    def _signals(self) -> Any:  # noqa: ANN401
        if self._signal is None:
            # Importing reactivex takes longer than the rest of this package; many programs only read.
            from statedb.signal import RevisionSignal

            self._signal = RevisionSignal(self._database.report)
        return self._signal

    # Initializers

    def register_initializer(self, name: str) -> Initializer:
        """Declare a source of initial rows; call the result in a transaction when they are complete."""
        self._database.change_pending(self, name)

        def done(txn: WriteTxn) -> None:
            state = txn.writable(self)
            txn.stage(self, state._replace(pending=state.pending - {name}), None)

        return done

    def initialized(self, txn: ReadTxn) -> bool:
        """Return whether all initializers of the table have completed."""
        return not txn.state(self).pending

    def pending_initializers(self, txn: ReadTxn) -> frozenset[str]:
        """Return the names of the initializers that have not completed."""
        return txn.state(self).pending
