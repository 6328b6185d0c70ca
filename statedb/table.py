"""A typed table: reads of any snapshot, writes within a transaction, changes, watches, a signal.

The table object itself holds no rows: each read names the snapshot (or transaction) that it reads,
and so all reads of one snapshot agree, over all tables, for as long as it is kept. Rows must be
immutable. Writing an equal row again is a write: it has a new revision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

from statedb.changes import ChangeIterator, ChangeLog
from statedb.errors import RevisionMismatch, RowNotFound, UniqueViolation, UnknownIndex
from statedb.index import Index, Key, LpmIndex, as_path
from statedb.state import (
    EMPTY,
    Entry,
    Path,
    TableState,
    check_arity,
    group_add,
    group_remove,
    leaves,
    lpm_path,
    lpm_search,
    tree_delete,
    tree_get,
    tree_set,
)
from statedb.watch import TABLE, Place, Watch, WatchRegistry

if TYPE_CHECKING:
    from reactivex import Observable

    from statedb.database import Database, ReadTxn, WriteTxn

T = TypeVar("T")

Initializer: TypeAlias = "Callable[[WriteTxn], None]"
"""Call it in a transaction of the table when the first filling is complete."""


class IndexKeys(NamedTuple):
    """All the keys of one row, in the order of the table's indexes."""

    indexes: tuple[tuple[Path, ...], ...]
    lpm: tuple[tuple[Path, ...], ...]


class Table(Generic[T]):
    """One table of a `Database`; made by `Database.table`."""

    def __init__(
        self,
        database: Database,
        slot: int,
        name: str,
        primary: Index[T],
        indexes: Iterable[Index[T] | LpmIndex[T]],
    ) -> None:
        self.name = name
        self.slot = slot
        """Its place in every snapshot."""
        self.primary = primary
        self.log = ChangeLog()
        self.watches = WatchRegistry(database.report)
        self._database = database
        declared = list(indexes)
        self._indexes = [index for index in declared if isinstance(index, Index)]
        self._lpm = [index for index in declared if isinstance(index, LpmIndex)]
        self._order = {index.name: i for i, index in enumerate(self._indexes)}
        self._lpm_order = {index.name: i for i, index in enumerate(self._lpm)}
        self._signal: Any = None

    def __repr__(self) -> str:
        """Name the table."""
        return f"<Table {self.name}>"

    def empty(self) -> TableState:
        """Make the state that the table begins with."""
        return TableState(
            revision=0,
            size=0,
            primary=EMPTY,
            indexes=(EMPTY,) * len(self._indexes),
            lpm=(EMPTY,) * len(self._lpm),
            arities=(0,) * (1 + len(self._indexes)),
            pending=frozenset(),
        )

    # Reads

    def get(self, txn: ReadTxn, key: Key) -> T | None:
        """Find the row with a primary key."""
        entry = tree_get(txn.state(self).primary, as_path(key))
        return entry.row if isinstance(entry, Entry) else None

    def get_with_revision(self, txn: ReadTxn, key: Key) -> tuple[T, int] | None:
        """Find the row with a primary key, and the revision at which it was written."""
        entry = tree_get(txn.state(self).primary, as_path(key))
        return (entry.row, entry.revision) if isinstance(entry, Entry) else None

    def all(self, txn: ReadTxn) -> Iterator[T]:
        """Iterate over all rows, in no particular order."""
        return (entry.row for entry in self._entries(txn))

    def count(self, txn: ReadTxn) -> int:
        """Count the rows."""
        return txn.state(self).size

    def revision(self, txn: ReadTxn) -> int:
        """Tell the table's revision: each insert, update and delete raises it by one."""
        return txn.state(self).revision

    def find(self, txn: ReadTxn, index: str, key: Key) -> Iterator[T]:
        """Iterate over the rows that have a key in an index."""
        state = txn.state(self)
        path = as_path(key)
        arity = state.arities[0 if index == self.primary.name else 1 + self._position(index)]
        return self._below(state, index, path) if len(path) == arity else iter(())

    def prefix(self, txn: ReadTxn, index: str, prefix: Key) -> Iterator[T]:
        """Iterate over the rows whose key in an index begins with these components."""
        return self._below(txn.state(self), index, as_path(prefix))

    def longest_match(
        self, txn: ReadTxn, index: str, address: str | IPv4Address | IPv6Address
    ) -> T | None:
        """Find the row with the most specific network that covers an address."""
        if index not in self._lpm_order:
            raise UnknownIndex(self.name, index, "longest-prefix-match index")
        state = txn.state(self)
        parsed = ip_address(address) if isinstance(address, str) else address
        group = lpm_search(state.lpm[self._lpm_order[index]], parsed)
        if group is None:
            return None
        found: Entry = min(
            (tree_get(state.primary, path) for path in group), key=lambda entry: entry.revision
        )
        row: T = found.row
        return row

    def by_revision(self, txn: ReadTxn, after: int = 0) -> Iterator[tuple[int, T]]:
        """Iterate over the rows written after a revision, in the order in which they were."""
        entries = [entry for entry in self._entries(txn) if entry.revision > after]
        entries.sort(key=lambda entry: entry.revision)
        return ((entry.revision, entry.row) for entry in entries)

    def _entries(self, txn: ReadTxn) -> Iterator[Entry]:
        state = txn.state(self)
        return leaves(state.primary, state.arities[0]) if state.size else iter(())

    def _position(self, index: str) -> int:
        position = self._order.get(index)
        if position is None:
            raise UnknownIndex(self.name, index)
        return position

    def _below(self, state: TableState, index: str, path: Path) -> Iterator[T]:
        if index == self.primary.name:
            tree = tree_get(state.primary, path)
            if tree is not None and state.size:
                for entry in leaves(tree, state.arities[0] - len(path)):
                    yield entry.row
            return
        position = self._position(index)
        tree = tree_get(state.indexes[position], path)
        if tree is None or not state.arities[1 + position]:
            return
        depth = state.arities[1 + position] - len(path)
        if self._indexes[position].unique:
            for member in leaves(tree, depth):
                yield tree_get(state.primary, member).row
            return
        # A multi-key row may stand at several keys below one prefix: told once.
        told: set[Path] = set()
        for group in leaves(tree, depth):
            for member in group:
                if depth == 0 or member not in told:
                    told.add(member)
                    yield tree_get(state.primary, member).row

    # Writes

    def upsert(self, txn: WriteTxn, row: T) -> T | None:
        """Insert a row or replace the one with its key; the row that was there, or None."""
        state = txn.writable(self)
        path = self._path(row)
        old = tree_get(state.primary, path) if state.size else None
        self._write(txn, state, path, old, row)
        return old.row if old is not None else None

    def compare_and_swap(self, txn: WriteTxn, row: T, revision: int) -> T:
        """Replace a row that is still at a revision; the row that was there.

        Raises `RowNotFound` or `RevisionMismatch`, and then changes nothing.
        """
        state = txn.writable(self)
        path = self._path(row)
        old = self._expect(state, path, revision)
        self._write(txn, state, path, old, row)
        replaced: T = old.row
        return replaced

    def delete(self, txn: WriteTxn, key: Key) -> T | None:
        """Delete the row with a primary key; the row that was there, or None."""
        state = txn.writable(self)
        path = as_path(key)
        old = tree_get(state.primary, path)
        if not isinstance(old, Entry):
            return None
        self._erase(txn, state, path, old)
        row: T = old.row
        return row

    def compare_and_delete(self, txn: WriteTxn, key: Key, revision: int) -> T:
        """Delete a row that is still at a revision; the row that was there."""
        state = txn.writable(self)
        path = as_path(key)
        old = self._expect(state, path, revision)
        self._erase(txn, state, path, old)
        row: T = old.row
        return row

    def delete_all(self, txn: WriteTxn) -> int:
        """Delete every row; how many there were."""
        keys = [self._path(row) for row in self.all(txn)]
        for key in keys:
            self.delete(txn, key)
        return len(keys)

    def _path(self, row: T) -> Path:
        (key,) = self.primary.keys(row)
        return as_path(key)

    def _expect(self, state: TableState, path: Path, revision: int) -> Entry:
        entry = tree_get(state.primary, path)
        if not isinstance(entry, Entry):
            raise RowNotFound(self.name, path)
        if entry.revision != revision:
            raise RevisionMismatch(self.name, path, revision, entry.revision)
        return entry

    def _keys_of(self, row: T) -> IndexKeys:
        return IndexKeys(
            tuple(tuple({as_path(k): None for k in ix.keys(row)}) for ix in self._indexes),
            tuple(tuple({lpm_path(n): None for n in ix.networks(row)}) for ix in self._lpm),
        )

    def _write(
        self, txn: WriteTxn, state: TableState, path: Path, old: Entry | None, row: T
    ) -> None:
        arities = list(state.arities)
        arities[0] = check_arity(self.name, self.primary.name, path, arities[0])
        indexes, lpm = list(state.indexes), list(state.lpm)
        after = self._keys_of(row)
        before = self._keys_of(old.row) if old is not None else None
        # Everything that can be refused is refused here, before anything is changed.
        for i, index in enumerate(self._indexes):
            for key in after.indexes[i]:
                arities[1 + i] = check_arity(self.name, index.name, key, arities[1 + i])
                if index.unique and tree_get(indexes[i], key) not in (None, path):
                    raise UniqueViolation(self.name, index.name, key)
        if before != after:
            if before is not None:
                self._unindex(indexes, lpm, before, path)
            for i, index in enumerate(self._indexes):
                for key in after.indexes[i]:
                    indexes[i] = (
                        tree_set(indexes[i], key, path)
                        if index.unique
                        else group_add(indexes[i], key, path)
                    )
            for i, paths in enumerate(after.lpm):
                for key in paths:
                    lpm[i] = group_add(lpm[i], key, path)
        revision = state.revision + 1
        txn.stage(
            self,
            TableState(
                revision,
                state.size + (old is None),
                tree_set(state.primary, path, Entry(row, revision)),
                tuple(indexes),
                tuple(lpm),
                tuple(arities),
                state.pending,
            ),
            (revision, path, row, False, old.row if old is not None else None),
        )

    def _erase(self, txn: WriteTxn, state: TableState, path: Path, old: Entry) -> None:
        indexes, lpm = list(state.indexes), list(state.lpm)
        self._unindex(indexes, lpm, self._keys_of(old.row), path)
        revision = state.revision + 1
        txn.stage(
            self,
            state._replace(
                revision=revision,
                size=state.size - 1,
                primary=tree_delete(state.primary, path),
                indexes=tuple(indexes),
                lpm=tuple(lpm),
            ),
            (revision, path, old.row, True, None),
        )

    def _unindex(self, indexes: list[Any], lpm: list[Any], keys: IndexKeys, path: Path) -> None:
        for i, index in enumerate(self._indexes):
            for key in keys.indexes[i]:
                indexes[i] = (
                    tree_delete(indexes[i], key)
                    if index.unique
                    else group_remove(indexes[i], key, path)
                )
        for i, paths in enumerate(keys.lpm):
            for key in paths:
                lpm[i] = group_remove(lpm[i], key, path)

    # Following

    def changes(self, database: Database) -> ChangeIterator[T]:
        """Follow the table from now on: all its rows first, then what changes."""
        return database.follow(self)

    def watch_key(self, txn: ReadTxn, key: Key) -> Watch:
        """Watch one row from this snapshot on."""
        return self.watch_prefix(txn, self.primary.name, key)

    def watch_prefix(self, txn: ReadTxn, index: str, prefix: Key) -> Watch:
        """Watch the rows whose key in an index begins with these components."""
        if index != self.primary.name:
            self._position(index)
        return self._watch(txn, (index, as_path(prefix)))

    def watch_table(self, txn: ReadTxn) -> Watch:
        """Watch the whole table from this snapshot on."""
        return self._watch(txn, TABLE)

    def _watch(self, txn: ReadTxn, place: Place) -> Watch:
        watch = self.watches.add(place)
        # What was committed after the snapshot and before the watch was there fires it at once.
        then, now = txn.state(self), self._database.snapshot().state(self)
        if then.revision != now.revision and (
            place == TABLE or self._subtree(then, place) is not self._subtree(now, place)
        ):
            self.watches.cancel(place, watch)
        return watch

    def _subtree(self, state: TableState, place: Place) -> Any:  # noqa: ANN401
        index, path = place
        if index == self.primary.name:
            return tree_get(state.primary, path)
        # An index knows which rows there are, not what is in them: any change counts.
        return state

    def places(self, row: T, path: Path) -> Iterator[Place]:
        """List the places whose watches a change of this row concerns."""
        yield from ((self.primary.name, path[:n]) for n in range(1, len(path) + 1))
        for index, keys in zip(self._indexes, self._keys_of(row).indexes, strict=True):
            for key in keys:
                yield from ((index.name, key[:n]) for n in range(1, len(key) + 1))

    @property
    def observable(self) -> Observable[int]:
        """The table's new revision after each commit that changed it: a signal, not the data.

        Subscribers are called in the committing thread, after the change is visible and without any
        lock held. An exception in one goes to the database's error handler; the others, and the
        writer, are not harmed.
        """
        return self._signals().observable  # type: ignore[no-any-return]  # made lazily, see below

    def emit(self, revision: int) -> None:
        """Tell the observable's subscribers; the database calls it after a commit."""
        if self._signal is not None:
            self._signal.emit(revision)

    def _signals(self) -> Any:  # noqa: ANN401
        if self._signal is None:
            # Importing reactivex costs more than everything else here; many programs only read.
            from statedb.signal import RevisionSignal

            self._signal = RevisionSignal(self._database.report)
        return self._signal

    # Initializers

    def register_initializer(self, name: str) -> Initializer:
        """Declare that somebody fills this table; call the result in a transaction when done."""
        self._database.change_pending(self, name)

        def done(txn: WriteTxn) -> None:
            state = txn.writable(self)
            txn.stage(self, state._replace(pending=state.pending - {name}), None)

        return done

    def initialized(self, txn: ReadTxn) -> bool:
        """Tell whether everybody who declared to fill this table has done so once."""
        return not txn.state(self).pending

    def pending_initializers(self, txn: ReadTxn) -> frozenset[str]:
        """Name those who have not filled it yet."""
        return txn.state(self).pending
