"""Follows the tables and the speaker's events, and adds their changes to the log.

Tables are followed from the first complete round of the intent on: what a start reads is no change.
They are read some time after a change, behind the work that it causes; an entry has the time of the
commit. While changes go on they are read together, every two seconds. Changes of a row within a quarter
of a second are one change, of the last commit. What a storm changes beyond the allowance of its kind is
counted.
"""

from __future__ import annotations

import asyncio
import operator
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec.structs import replace
from reactivex import operators

from cells.api.history import HistoryItem
from cells.history.events import SESSION, entry_of
from cells.history.log import HistoryLog
from cells.history.rows import MOST_CAUSES, Recorded, recorded_tables
from cells.hive.jobs import WITHOUT_END, Jobs
from cells.hive.rounds import in_slices
from cells.hive.signal import Signal
from cells.intent.cell import IntentLoop
from cells.speaker.events import SpeakerEvents
from reconcilers.intent_tables import IntentTables
from reconcilers.sliced_work import Pieces, Slices
from reconcilers.token_bucket import TokenBucket
from resources.row_updates import primary_key
from resources.tables import Tables
from speaker.api import Event
from statedb import ChangeIterator, Database, Key, Snapshot, Table

SETTLE_SECONDS: Final = 0.25
"""From the first change to the reading: routes have been sent by then. Changes of a row that follow one
another sooner are one change."""
BUSY_SECONDS: Final = 2.0
"""From one reading to the next: of several changes at once each takes half of the time."""
BURST: Final = 400
"""Entries of one kind at once."""
PER_SECOND: Final = 40.0
"""Entries of one kind in the long run; others are counted."""
SLICE: Final = 20
"""Entries between two turns of the loop: about a millisecond."""
NOT_LISTED: Final = "changes that are counted only, as there were too many at once"

Followed: TypeAlias = tuple[Recorded, ChangeIterator[Any]]
Times: TypeAlias = Sequence[tuple[int, float]]
"""The commits of a table: its revision, and when it was reached (seconds since the epoch)."""
_moment: Final = operator.attrgetter("time")


class ChangedRow(NamedTuple):
    """A change of a row that becomes an entry."""

    time: float
    recorded: Recorded
    old: Any
    new: Any


class Allowance:
    """The number of entries that a kind may add."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._bucket = TokenBucket(BURST, PER_SECOND)

    def take(self, wanted: int) -> int:
        """Return how many of so many entries may be added now."""
        granted = min(wanted, int(self._bucket.tokens(self._clock())))
        self._bucket.take(granted)
        return granted


class Commits:
    """When tables were committed, and the waking of their reader some time after the first commit."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._loop = asyncio.get_running_loop()
        self._times: dict[Table[Any], list[tuple[int, float]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due = asyncio.Event()
        self._taken = float("-inf")

    def follow(self, tables: Iterable[Table[Any]], stack: ExitStack) -> None:
        """Note the commits of tables until the stack is closed."""
        for table in tables:
            subscription = table.observable.subscribe(partial(self._note, table))
            stack.callback(subscription.dispose)
        stack.callback(self._stop)

    async def wait(self) -> None:
        """Wait until some time has passed since the first commit that was not taken."""
        await self._due.wait()

    def take(self) -> Mapping[Table[Any], Times]:
        """Return the commits since the last call."""
        times, self._times = self._times, {}
        self._stop()
        self._due.clear()
        self._taken = self._loop.time()
        return times

    def hasten(self) -> bool:
        """Wake the reader at once if there are commits to take; returns whether there are."""
        if self._times:
            self._due.set()
        return bool(self._times)

    def _note(self, table: Table[Any], revision: int) -> None:
        self._times.setdefault(table, []).append((revision, self._wall()))
        if self._timer is None:
            now = self._loop.time()
            at = max(now + SETTLE_SECONDS, self._taken + BUSY_SECONDS)
            self._timer = self._loop.call_at(at, self._due.set)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class HistoryFollower:
    """The job that follows the tables."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        intent_tables: IntentTables,
        intent: IntentLoop,
        events: SpeakerEvents,
        log: HistoryLog,
        jobs: Jobs,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._wall = wall
        self._intent = intent
        self._log = log
        self._recorded = recorded_tables(tables, intent_tables)
        self._allowances = {recorded.kind: Allowance(clock) for recorded in self._recorded}
        self._of_events = Allowance(clock)
        self._peers = intent_tables.peers
        self._before: Snapshot | None = None
        """The tables as they were read last."""
        self._commits: Commits | None = None
        self._waiting: list[HistoryItem] = []
        """Entries of events behind changes of tables that are read at once."""
        # A session that fails a thousand times a second is a storm, too.
        events.observable.pipe(
            operators.map(self._entry),
            operators.filter(lambda item: item is not None),
        ).subscribe(self._add)
        jobs.add("follow", self._run, policy=WITHOUT_END)

    def _entry(self, event: Event) -> HistoryItem | None:
        """Return the entry of an event; a session's has the objects that configure it as causes."""
        item = entry_of(event, _now())
        if item is None or item.kind != SESSION:
            return item
        return replace(item, causes=self._origins(event))

    def _origins(self, event: Any) -> tuple[str, ...]:  # noqa: ANN401  with an instance and a peer
        """Return the objects of a session; of a removed session, the objects of its last row."""
        key = (event.instance, event.peer)
        snapshots = (self._database.snapshot(), self._before)
        rows = (self._peers.get(taken, key) for taken in snapshots if taken is not None)
        row = next(filter(None, rows), None)
        return () if row is None else tuple(map(str, row.origins[:MOST_CAUSES]))

    def _add(self, item: HistoryItem | None) -> None:
        """Add the entry of an event, behind what has changed before it."""
        if item is None:
            return
        item = item if self._of_events.take(1) else counted(item.kind, 1)
        if self._commits is not None and self._commits.hasten():
            self._waiting.append(item)
        else:
            self._log.add(item)

    async def _run(self) -> None:
        complete = self._intent.done.pipe(
            operators.filter(lambda _: self._intent.complete), operators.take(1)
        )
        with Signal(complete) as signal:
            while not self._intent.complete:
                await signal.wait()
        with ExitStack() as stack:
            self._before = self._database.snapshot()
            followed = [
                (recorded, stack.enter_context(closing(recorded.table.changes(self._database))))
                for recorded in self._recorded
            ]
            for _, iterator in followed:
                iterator.skip(self._before)
            self._log.add(_start(self._before, self._recorded))
            commits = self._commits = Commits(self._wall)
            stack.callback(self._stop)
            commits.follow((recorded.table for recorded in self._recorded), stack)
            while True:
                await commits.wait()
                times = commits.take()
                events, self._waiting = self._waiting, []
                changed = [each for each in followed if each[0].table in times]
                after = self._database.snapshot()
                await in_slices(self._entries(changed, times, self._before, after))
                for item in events:
                    self._log.add(item)
                # The rows that were replaced are released with the changes, in slices.
                self._before = after
                for _, iterator in changed:
                    await in_slices(iterator.release())

    def _stop(self) -> None:
        self._commits = None
        for item in self._waiting:
            self._log.add(item)
        self._waiting = []

    def _entries(
        self,
        changed: Sequence[Followed],
        commits: Mapping[Table[Any], Times],
        before: Snapshot,
        after: Snapshot,
    ) -> Slices[None]:
        """Add the changes of tables between two snapshots, in the order of their commits."""
        noted: list[ChangedRow] = []
        beyond: dict[str, int] = {}
        for recorded, iterator in changed:
            times = commits[recorded.table]
            allowance = self._allowances[recorded.kind]
            present: dict[Key, Any] = {}
            key_of = primary_key(recorded.table)
            for changes in iterator.read(after, apart=partial(_apart, times)):
                granted = allowance.take(len(changes))
                for change in changes[:granted]:
                    key = key_of(change.row)
                    old = present[key] if key in present else recorded.table.get(before, key)
                    new = present[key] = None if change.deleted else change.row
                    if old is not None or new is not None:  # else it came and went in between
                        noted.append(
                            ChangedRow(_time_of(times, change.revision), recorded, old, new)
                        )
                if granted < len(changes):
                    beyond[recorded.kind] = beyond.get(recorded.kind, 0) + len(changes) - granted
                if granted < len(changes) or not changes or granted > SLICE:
                    yield
        noted.sort(key=_moment)
        pieces = Pieces(SLICE)
        for at, recorded, old, new in noted:
            item = yield from recorded.entry(old, new, _as_time(at))
            if item is not None:
                self._log.add(item)
            if pieces.fill_slice():
                yield
        for kind, number in beyond.items():
            self._log.add(counted(kind, number))


def _time_of(commits: Times, revision: int) -> float:
    """Return the time of the commit that has a revision."""
    return commits[bisect_left(commits, (revision,))][1]


def _apart(commits: Times, revision: int, following: int) -> bool:
    at = bisect_left(commits, (revision,))  # as `_time_of`, twice
    later = bisect_left(commits, (following,), lo=at)
    return commits[later][1] - commits[at][1] >= SETTLE_SECONDS


def counted(kind: str, number: int) -> HistoryItem:
    """Return the entry of changes that are not listed one by one."""
    return HistoryItem(
        event_time=_now(), type="OCCURRED", kind=kind, message=NOT_LISTED, count=number
    )


def _start(snapshot: Snapshot, recorded: Sequence[Recorded]) -> HistoryItem:
    """Return the entry with which the changes of a process begin."""
    numbers = [(of.kind, of.table.count(snapshot)) for of in recorded]
    text = ", ".join(f"{count} {kind}" for kind, count in numbers if count)
    return HistoryItem(
        event_time=_now(), type="OCCURRED", kind="Agent", name="start", message=f"read: {text}"
    )


def _now() -> datetime:
    return _as_time(time.time())


def _as_time(seconds: float) -> datetime:
    return datetime.fromtimestamp(int(seconds * 1000) / 1000, UTC)
