"""Dialects that have been read: a dialect with unreadable kinds does not stop the others.

At a start all dialects are compiled together, as conflicts between them depend on the age of objects.
A dialect that has been read waits for the others for `WAIT_SECONDS` at most. Dialects that feed each
other are one configuration, and wait for each other until a source gives up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple, final

from reconcilers.dialect import Feeding
from reconcilers.model import PendingDialect
from statedb import Snapshot, Table

WAIT_SECONDS: Final = 10.0
"""For which the dialects that have been read wait for the others: peers usually keep the routes of a
restart for 120 s, and a list takes less than one."""


class Reading(NamedTuple):
    """The dialects that have been read."""

    ready: AbstractSet[str]
    """The names of the dialects that do not wait."""
    unread: tuple[Table[Any], ...] = ()
    """The tables that some source has not filled yet."""
    retry: float | None = None
    """The seconds after which more dialects are ready, if nothing is read before."""


@final
class DialectReadings:
    """Decides which dialects are ready; a ready dialect stays ready."""

    def __init__(
        self,
        tables: Iterable[Table[Any]],
        own: Mapping[str, AbstractSet[Table[Any]]],
        feeding: Feeding,
        clock: Callable[[], float],
    ) -> None:
        """``tables`` are all that a source fills, ``own`` by dialect the tables of its kinds.

        What no dialect has for its own all of them wait for. ``clock`` is monotonic, in seconds.
        """
        self._unread = tuple(tables)
        self._waiting = {
            names: frozenset[Table[Any]]().union(*(own[name] for name in names))
            for names in feeding.groups
        }
        """The groups of dialects that have not been read, with their own tables."""
        self._shared = frozenset(self._unread).difference(*self._waiting.values())
        self._clock = clock
        self._read: frozenset[str] = frozenset()
        self._complete: Reading | None = None
        """Once everything has been read."""
        self._deadline: float | None = None
        """Until which the first dialects that have been read wait for the others."""

    def unread_of(self, dialect: str) -> tuple[str, ...]:
        """Return the unread tables for which a dialect waits, with the tables it feeds."""
        waiting = (own for names, own in self._waiting.items() if dialect in names)
        own = next(waiting, frozenset[Table[Any]]())
        return tuple(table.name for table in self._unread if table in own)

    def pending(
        self, dialects: Iterable[str], reading: Reading, waiting: Mapping[str, Table[Any]]
    ) -> tuple[PendingDialect, ...]:
        """Return the dialects that have not been read, or ``waiting`` for another table."""
        return tuple(
            PendingDialect(name, (waiting[name].name,) if name in waiting else self.unread_of(name))
            for name in dialects
            if name in waiting or name not in reading.ready
        )

    def reading(self, snapshot: Snapshot) -> Reading:
        """Return which dialects have been read and are ready."""
        if self._complete is not None:
            return self._complete
        self._unread = tuple([t for t in self._unread if not t.initialized(snapshot)])
        unread = self._unread
        for names in [names for names, own in self._waiting.items() if own.isdisjoint(unread)]:
            self._read |= names
            del self._waiting[names]
        if not unread:
            self._complete = Reading(self._read)
            return self._complete
        now = self._clock()
        if self._read and self._deadline is None:
            self._deadline = now + WAIT_SECONDS
        if self._deadline is not None and now < self._deadline:
            return Reading(frozenset(), unread, self._deadline - now)
        is_ready = self._shared.isdisjoint(unread)
        return Reading(self._read if is_ready else frozenset(), unread)
