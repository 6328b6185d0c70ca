"""Changes of a table in the order of their revisions, deletions included.

While somebody follows a table, each commit appends what it did to the table's log. An iterator
takes the part of the log between the revision that it has seen and that of the snapshot it is
given, and keeps the last change of each row: the cost is that of the changes, not of the table. The
log forgets what all iterators have seen; without iterators nothing is kept.
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
"""Log entries below which superseded ones are not worth the search."""


class Change(NamedTuple, Generic[T]):
    """One row as it was written, or as it was before it was deleted."""

    row: T
    revision: int
    deleted: bool


class Logged(NamedTuple):
    """One entry of the log."""

    revision: int
    path: Path
    row: Any
    deleted: bool


class ChangeLog:
    """What happened to one table since the slowest iterator looked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[Logged] = []
        self._followers: weakref.WeakSet[ChangeIterator[Any]] = weakref.WeakSet()
        self._compact_at = COMPACT_ABOVE

    @property
    def followed(self) -> bool:
        """Whether commits have to be logged."""
        return len(self._followers) > 0

    def __len__(self) -> int:
        """How many entries are kept."""
        return len(self._entries)

    def follow(self, iterator: ChangeIterator[Any]) -> None:
        """Keep what this iterator has not seen."""
        with self._lock:
            self._followers.add(iterator)

    def unfollow(self, iterator: ChangeIterator[Any]) -> None:
        """Keep nothing more for this iterator."""
        with self._lock:
            self._followers.discard(iterator)
        self.trim()

    def append(self, entries: list[Logged]) -> None:
        """Add the changes of one commit; called in revision order, before they are visible."""
        with self._lock:
            if len(self._followers):
                self._entries.extend(entries)
                if len(self._entries) > self._compact_at:
                    self._compact()
        if len(self._entries) > COMPACT_ABOVE:
            self.trim()

    def between(self, after: int, until: int) -> list[Logged]:
        """List the entries with ``after < revision <= until``."""
        entries = self._entries
        start = bisect_right(entries, after, key=lambda entry: entry.revision)
        end = bisect_right(entries, until, lo=start, key=lambda entry: entry.revision)
        return entries[start:end]

    def trim(self) -> None:
        """Forget what every iterator has seen."""
        with self._lock:
            seen = min((follower.seen for follower in self._followers), default=None)
            if seen is None:
                self._entries = []
            else:
                start = bisect_right(self._entries, seen, key=lambda entry: entry.revision)
                if start:
                    self._entries = self._entries[start:]

    def _compact(self) -> None:
        # A slow iterator should cost memory for the rows that changed, not for every change of
        # them. A reader with an old snapshot then misses an intermediate state, not the final one.
        last = {entry.path: entry.revision for entry in self._entries}
        self._entries = [e for e in self._entries if last[e.path] == e.revision]
        self._compact_at = max(COMPACT_ABOVE, 2 * len(self._entries))


class ChangeIterator(Generic[T]):
    """Follows one table; made by `Table.changes`.

    The first `next` gives all rows that are there, each later one what changed since. A row that
    came and went in between is told as deleted. Close it, or drop it, when it is no longer needed.
    """

    def __init__(self, table: Table[T], log: ChangeLog, base: TableState) -> None:
        self._table = table
        self._log = log
        self._base: TableState | None = base
        self._closed = False
        self.seen = base.revision
        """The revision up to which it has been told."""

    def next(self, txn: ReadTxn) -> Iterator[Change[T]]:
        """Iterate over what changed up to this snapshot, in order of revision."""
        return iter(self._take(txn))

    def _take(self, txn: ReadTxn) -> list[Change[T]]:
        if self._closed:
            return []
        state = txn.state(self._table)
        if self._base is not None:
            # A snapshot from before the iterator was made would leave a gap: start at the later.
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
            last = {e.path: e for e in self._log.between(self.seen, state.revision)}
            self.seen = state.revision
            changes = [
                Change(e.row, e.revision, e.deleted)
                for e in sorted(last.values(), key=lambda entry: entry.revision)
            ]
        self._log.trim()
        return changes

    def close(self) -> None:
        """Stop following."""
        self._closed = True
        self._log.unfollow(self)
