"""Changes of a table in the order of their revisions, deletions included.

While a table has change iterators, each commit appends its changes to the table's log. An iterator
reads the log from the revision that it has seen to that of the given snapshot, and returns the last
change of each row: the cost depends on the changes, not on the table. Entries that all iterators have
seen are removed; without iterators the log stays empty.
"""

from __future__ import annotations

import operator
import threading
import weakref
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from statedb.state import Change, Path, TableState, leaves

if TYPE_CHECKING:
    from statedb.database import ReadTxn
    from statedb.table import Table

T = TypeVar("T")

COMPACT_ABOVE = 1024
"""The number of log entries above which superseded ones are removed."""
SLICE = 5000
"""Changes of a slice: some milliseconds."""


class LogEntry(NamedTuple):
    """One change of one row, by the primary path of the row."""

    path: Path
    change: Change[Any]
    replaced: Change[Any] | None
    """The replaced change. Snapshots release very many rows at once, the log does so in slices."""


_change: Final = operator.attrgetter("change")
_revision: Final = operator.attrgetter("change.revision")
_seen: Final = operator.attrgetter("seen")


Apart: TypeAlias = Callable[[int, int], bool]
"""Whether two changes of a row, by their revisions, are both of interest."""


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
        with self._lock:
            entries = self._entries
            start = bisect_right(entries, after, key=_revision)
            end = bisect_right(entries, until, lo=start, key=_revision)
            return entries[start:end]

    def trim(self, at_most: int | None = None) -> bool:
        """Remove the entries that every iterator has seen, or some; returns whether all are removed."""
        if not self._entries:
            return True
        with self._lock:
            seen = min(map(_seen, self._followers), default=None)
            if seen is None:
                end = len(self._entries)
            else:
                end = bisect_right(self._entries, seen, key=_revision)
            some = end if at_most is None else min(end, at_most)
            del self._entries[:some]
            return some == end

    def _compact(self) -> None:
        # A slow iterator costs memory for each changed row, not for each change. A reader with an
        # old snapshot then misses an intermediate change, never the last one.
        last = {entry.path: entry.change for entry in self._entries}
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
        self._read = base.revision
        """The revision up to which `read` has returned changes that are not released yet."""

    def next(self, txn: ReadTxn) -> Iterator[Change[T]]:
        """Iterate over the changes up to a snapshot, in order of revision."""
        if self._closed:
            return iter(())
        if self._base is not None:
            return chain.from_iterable(list(self.slices(txn)))
        revision = txn.state(self._table).revision
        if revision <= self.seen:
            return iter(())
        entries = self._log.between(self.seen, revision)
        last = {entry.path: entry.change for entry in entries} if len(entries) > 1 else {}
        if len(last) < len(entries) > 1:
            entries = [entry for entry in entries if last[entry.path] is entry.change]
        self.seen = revision
        self._log.trim()
        return map(_change, entries)

    def skip(self, txn: ReadTxn) -> None:
        """Treat the changes up to a snapshot as returned, its rows at the first call included."""
        # An iterator that has returned nothing has seen the revision of its beginning.
        self._base = None
        self.seen = max(self.seen, txn.state(self._table).revision)
        self._log.trim()

    def slices(self, txn: ReadTxn, size: int = SLICE) -> Generator[list[Change[T]], None, None]:
        """As `next`, in slices of about equal work: some of the lists are empty.

        The changes are seen at the end: the changes of an iteration that is given up come again.
        """
        yield from self.read(txn, size)
        for _ in self.release(size):
            yield []

    def read(
        self, txn: ReadTxn, size: int = SLICE, apart: Apart | None = None
    ) -> Generator[list[Change[T]], None, None]:
        """As `slices`, for a reader with a snapshot of before: `release` follows once that is dropped.

        Until then the log has the rows that were replaced, which a snapshot would release all at once.
        With ``apart`` a row has several changes where two are apart, as far as the log has them
        (a long log has the last ones).
        """
        if self._closed:
            return
        state = txn.state(self._table)
        if self._base is not None:
            # A snapshot that is older than the iterator would leave a gap: start at the later one.
            if state.revision < self._base.revision:
                state = self._base
            changes = yield from _all_rows(state, size)
        elif state.revision > self.seen:
            entries = self._log.between(self.seen, state.revision)
            changes = yield from _last_changes(entries, size, apart)
        else:
            return
        changes.reverse()
        while changes:
            yield changes[: -size - 1 : -1]
            del changes[-size:]
        self._base = None
        self._read = state.revision

    def release(self, size: int = SLICE) -> Generator[None, None, None]:
        """Release the changes that `read` has returned, in slices."""
        if self._read <= self.seen:
            return
        self.seen = self._read
        while not self._log.trim(size):
            yield

    def close(self) -> None:
        """Stop: `next` returns nothing from now on."""
        self._closed = True
        self._log.unfollow(self)


Sliced: TypeAlias = Generator[list[Any], None, T]
"""Yields an empty list after each slice of work, and returns the result."""


def _all_rows(state: TableState, size: int) -> Sliced[list[Change[Any]]]:
    """Return the last change of each row of a state, in the order of their revisions."""
    rows = leaves(state.primary, state.arities[0]) if state.size else iter(())
    runs: list[list[Change[Any]]] = []
    while some := list(islice(rows, size)):
        some.sort(key=_of_change)
        runs.append(some)
        if len(some) == size:
            yield []
    while len(runs) > 1:
        merged = []
        for at in range(0, len(runs), 2):
            # Two runs that are sorted are merged in linear time.
            merged.append(sorted(chain.from_iterable(runs[at : at + 2]), key=_of_change))
            yield []
        runs = merged
    return runs[0] if runs else []


def _last_changes(
    entries: list[LogEntry], size: int, apart: Apart | None
) -> Sliced[list[Change[Any]]]:
    """Return the last change of each row, in the order of their revisions.

    Also each change that is apart from the next one of its row.
    """
    last: dict[Path, Change[Any]] = {}
    for start in range(0, len(entries), size):
        if start:
            yield []
        last.update([(entry.path, entry.change) for entry in entries[start : start + size]])
    if len(last) == len(entries):
        return list(map(_change, entries))
    changes: list[Change[Any]] = []
    for start in range(0, len(entries), size):
        if start:
            yield []
        some = entries[start : start + size]
        if apart is None:
            changes += [entry.change for entry in some if last[entry.path] is entry.change]
            continue
        # From the end: `last` has the next change of each row, and at the end its first one.
        some = entries[len(entries) - start - len(some) : len(entries) - start]
        for path, change, _ in reversed(some):
            following = last[path]
            if following is change or apart(change.revision, following.revision):
                changes.append(change)
            last[path] = change
    if apart is not None:
        changes.reverse()
    return changes


_of_change: Final = operator.attrgetter("revision")
