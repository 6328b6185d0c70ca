"""Follows the tables and the speaker's events, and adds their changes to the log.

Tables are followed from the first complete round of the intent on: what a start reads is no change.
They are read some time after a change, behind the work that it causes. A row that changed several times
in between is one change. What a storm changes beyond the allowance of its kind is counted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from typing import Any, Final

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
from reconcilers.tables import IntentTables
from resources.tables import Tables
from speaker.api import Event
from statedb import Change, ChangeIterator, Database, Snapshot

SETTLE_SECONDS: Final = 0.25
"""From the first change to the reading: routes have been sent by then."""
BURST: Final = 400
"""Entries of one kind at once."""
PER_SECOND: Final = 40.0
"""Entries of one kind in the long run; others are counted."""
SLICE: Final = 20
"""Entries between two turns of the loop: about a millisecond."""
NOT_LISTED: Final = "changes that are counted only, as there were too many at once"


class Allowance:
    """The number of entries that a kind may add: a token bucket."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tokens = float(BURST)
        self._since = clock()

    def take(self, wanted: int) -> int:
        """Return how many of so many entries may be added now."""
        now = self._clock()
        self._tokens = min(float(BURST), self._tokens + PER_SECOND * (now - self._since))
        self._since = now
        granted = min(wanted, int(self._tokens))
        self._tokens -= granted
        return granted


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
    ) -> None:
        self._database = database
        self._intent = intent
        self._log = log
        self._recorded = recorded_tables(tables, intent_tables)
        self._allowances = {recorded.kind: Allowance(clock) for recorded in self._recorded}
        self._of_events = Allowance(clock)
        self._peers = intent_tables.peers
        self._before: Snapshot | None = None
        """The tables as they were read last."""
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
        """Add the entry of an event."""
        if item is not None:
            self._log.add(item if self._of_events.take(1) else counted(item.kind, 1))

    async def _run(self) -> None:
        complete = self._intent.done.pipe(
            operators.filter(lambda _: self._intent.complete), operators.take(1)
        )
        with Signal(complete) as signal:
            while not self._intent.complete:
                await signal.wait()
        with ExitStack() as stack:
            before = self._before = self._database.snapshot()
            followed = [
                (recorded, stack.enter_context(closing(recorded.table.changes(self._database))))
                for recorded in self._recorded
            ]
            for _, iterator in followed:
                iterator.skip(before)
            self._log.add(_start(before, self._recorded))
            observables = [recorded.table.observable for recorded in self._recorded]
            signal = stack.enter_context(Signal(*observables))
            while True:
                await signal.wait()
                await asyncio.sleep(SETTLE_SECONDS)
                after = self._database.snapshot()
                changed = self._database.changed(before.revisions, after)
                for recorded, iterator in followed:
                    if recorded.table in changed:
                        await self._follow(recorded, iterator, before, after)
                before = self._before = after
                for _, iterator in followed:
                    for _ in iterator.release():
                        await asyncio.sleep(0)

    async def _follow(
        self,
        recorded: Recorded,
        iterator: ChangeIterator[Any],
        before: Snapshot,
        after: Snapshot,
    ) -> None:
        """Add the changes of one table between two snapshots."""
        allowance = self._allowances[recorded.kind]
        beyond = 0
        for changes in iterator.read(after):
            granted = allowance.take(len(changes))
            beyond += len(changes) - granted
            for group in _groups(changes[:granted]):
                now = _now()
                for change in group:
                    old = recorded.table.get(before, recorded.key(change.row))
                    new = None if change.deleted else change.row
                    if old is None and new is None:
                        continue  # came and went in between
                    item = await in_slices(recorded.entry(old, new, now))
                    if item is not None:
                        self._log.add(item)
                await asyncio.sleep(0)
            if not granted:
                await asyncio.sleep(0)
        if beyond:
            self._log.add(counted(recorded.kind, beyond))


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


def _groups(changes: Sequence[Change[Any]]) -> Iterator[Sequence[Change[Any]]]:
    return (changes[start : start + SLICE] for start in range(0, len(changes), SLICE))


def _now() -> datetime:
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)
