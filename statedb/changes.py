"""Changes of a table in the order of their revisions, deletions included.

While a table has change iterators, each commit appends its changes to the table's log. An iterator
reads the log from the revision that it has seen to that of the given snapshot, and returns the last
change of each row: the cost depends on the changes, not on the table. Entries that all iterators have
seen are removed; without iterators the log stays empty.
"""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from statedb.state import Path, TableState, leaves

if TYPE_CHECKING:
    from statedb.database import ReadTxn
    from statedb.table import Table

T = TypeVar("T")

COMPACT_ABOVE = 1024
"""The number of log entries above which superseded ones are removed."""


class Change(NamedTuple, Generic[T]):
    """One row as written, or as it was before its deletion."""

    row: T
    revision: int
    deleted: bool


class LogEntry(NamedTuple):
    """One change of one row, by the primary path of the row."""

    path: Path
    change: Change[Any]


def _revision(entry: LogEntry) -> int:
    return entry.change.revision


class ChangeLog:
    """The changes of one table that not all of its iterators have seen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[LogEntry] = []
        self._followers: weakref.WeakSet[ChangeIterator[Any]] = weakref.WeakSet()
        self._compact_at = COMPACT_ABOVE

    @property
    def followed(self) -> bool:
        """Whether the table has change iterators, so that commits have to be logged."""
        return len(self._followers) > 0

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._entries)

    def follow(self, iterator: ChangeIterator[Any]) -> None:
        """Register an iterator: changes that it has not seen are kept."""
        with self._lock:
            self._followers.add(iterator)

    def unfollow(self, iterator: ChangeIterator[Any]) -> None:
        """Remove an iterator."""
        with self._lock:
            self._followers.discard(iterator)
        self.trim()

    def append(self, entries: list[LogEntry]) -> None:
        """Add the changes of one commit; called in revision order, before they are visible."""
        with self._lock:
            if len(self._followers):
                self._entries.extend(entries)
                # Many rows of one commit are different ones: not compacted before the next commit.
                if len(self._entries) > self._compact_at + len(entries):
                    self._compact()
        if len(self._entries) > COMPACT_ABOVE:
            self.trim()

    def between(self, after: int, until: int) -> list[LogEntry]:
        """Return the entries with ``after < revision <= until``."""
        entries = self._entries
        start = bisect_right(entries, after, key=_revision)
        end = bisect_right(entries, until, lo=start, key=_revision)
        return entries[start:end]

    def trim(self) -> None:
        """Remove the entries that every iterator has seen."""
        with self._lock:
            seen = min((follower.seen for follower in self._followers), default=None)
            if seen is None:
                self._entries = []
            else:
                start = bisect_right(self._entries, seen, key=_revision)
                if start:
                    self._entries = self._entries[start:]

    def _compact(self) -> None:
        # A slow iterator costs memory for each changed row, not for each change. A reader with an
        # old snapshot then misses an intermediate change, never the last one.
        last = dict(self._entries)
        self._entries = [entry for entry in self._entries if last[entry.path] is entry.change]
        self._compact_at = max(COMPACT_ABOVE, 2 * len(self._entries))


class ChangeIterator(Generic[T]):
    """Iterates over the changes of one table; created by `Table.changes`.

    The first `next` returns all rows, each later one the changes since. A row that was inserted and
    deleted in between is returned as deleted. Close or drop an iterator that is no longer needed.
    """

    def __init__(self, table: Table[T], log: ChangeLog, base: TableState) -> None:
        self._table = table
        self._log = log
        self._base: TableState | None = base
        self._closed = False
        self.seen = base.revision
        """The table's revision up to which changes were returned."""

    def next(self, txn: ReadTxn) -> Iterator[Change[T]]:
        """Iterate over the changes up to a snapshot, in order of revision."""
        return iter(self._take(txn))

    def skip(self, txn: ReadTxn) -> None:
        """Treat the changes up to a snapshot as returned, its rows at the first call included."""
        # An iterator that has returned nothing has seen the revision of its beginning.
        self._base = None
        self.seen = max(self.seen, txn.state(self._table).revision)
        self._log.trim()

    def _take(self, txn: ReadTxn) -> list[Change[T]]:
        if self._closed:
            return []
        state = txn.state(self._table)
        if self._base is not None:
            # A snapshot that is older than the iterator would leave a gap: start at the later one.
            base, self._base = self._base, None
            if state.revision < base.revision:
                state = base
            self.seen = state.revision
            rows = leaves(state.primary, state.arities[0]) if state.size else ()
            entries = sorted(rows, key=lambda entry: entry.revision)
            changes = [Change(entry.row, entry.revision, False) for entry in entries]
        elif state.revision <= self.seen:
            return []
        else:
            found = self._log.between(self.seen, state.revision)
            # Several changes of one row have its path once, and the last of them as value.
            changes = list(dict(found).values())
            if len(changes) < len(found):
                changes.sort(key=lambda change: change.revision)
            self.seen = state.revision
        self._log.trim()
        return changes

    def close(self) -> None:
        """Stop: `next` returns nothing from now on."""
        self._closed = True
        self._log.unfollow(self)
