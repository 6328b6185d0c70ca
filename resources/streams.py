"""Streams that several subscribers share: isolation, changes of objects, backlogs of slow readers.

A reactivex Subject raises a subscriber's exception into the producer, and the subscribers behind it
miss the item. `isolated` confines it to that subscriber, `guarded` hands it to the subscriber's job.
Nothing here uses a scheduler or a thread: an item is delivered in the producer's turn of the loop,
except that a list of all objects is compared in slices, in turns of its own.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Final, Literal, ParamSpec, TypeVar

import msgspec
from reactivex import Observable, abc
from reactivex.disposable import (
    CompositeDisposable,
    Disposable,
    SingleAssignmentDisposable,
)

from resources.kind import Kind
from resources.meta import ObjectKey, Resource
from resources.source import Delete, Event, Replace, Upsert
from statedb import Snapshot, Table

T = TypeVar("T")
P = ParamSpec("P")

SLICE_SECONDS: Final = 0.002
"""Work between two turns of the loop; several watches may work in each turn."""


class ObjectChange(msgspec.Struct, frozen=True):
    """One object that was added, modified or deleted: its name, never its content."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    kind: str
    namespace: str
    """Empty for a cluster-scoped object."""
    name: str


def log_failure(error: Exception) -> None:
    """Log the exception of a subscriber."""
    logging.getLogger("waggle.resources").error("a subscriber failed", exc_info=error)


def isolated(
    source: Observable[T], report: Callable[[Exception], None] = log_failure
) -> Observable[T]:
    """Return the stream with each subscriber isolated.

    An exception in a subscriber ends its own subscription and goes to ``report``; the producer and the
    other subscribers are unaffected. So does the error of the stream where a subscriber does not
    handle it.
    """

    def subscribe(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        subscription = SingleAssignmentDisposable()

        def fenced(deliver: Callable[P, None]) -> Callable[P, None]:
            def call(*arguments: P.args, **named: P.kwargs) -> None:
                try:
                    deliver(*arguments, **named)
                except Exception as error:  # noqa: BLE001 - the fence between subscribers
                    subscription.dispose()
                    report(error)

            return call

        subscription.disposable = source.subscribe(
            fenced(observer.on_next),
            fenced(observer.on_error),
            fenced(observer.on_completed),
            scheduler=scheduler,
        )
        return subscription

    return Observable(subscribe)


def guarded(
    handle: Callable[[T], None], on_error: Callable[[BaseException], None]
) -> Callable[[T], None]:
    """Return a subscriber that passes its exceptions to ``on_error`` and stays subscribed."""

    def on_next(item: T) -> None:
        try:
            handle(item)
        except Exception as error:  # noqa: BLE001 - the fence between a source and its subscriber
            on_error(error)

    return on_next


class KnownObjects:
    """The objects of one kind that a reader knows: those of a snapshot, overlaid by later changes.

    Nothing is copied: the memory is that of the objects which have changed since the snapshot.
    """

    def __init__(self, kind: Kind[Any], table: Table[Any], snapshot: Snapshot) -> None:
        self._kind = kind.name
        self._table = table
        self._snapshot = snapshot
        self._overlay: dict[ObjectKey, Resource | None] = {}
        """Objects that are not as in the snapshot; None is a deleted one."""

    def present(self) -> Iterator[ObjectChange]:
        """Iterate over the objects of the snapshot, as added."""
        return (self._change("ADDED", row.key) for row in self._table.all(self._snapshot))

    def compare(self, event: Event) -> Iterator[ObjectChange | None]:
        """Iterate over the changes of an event, which the reader knows then.

        Lazy: each step has the cost of one object; None is an object without a change.
        """
        match event:
            case Upsert(row):
                yield self._upsert(row)
            case Delete(key):
                yield self._delete(key)
            case Replace(rows):
                listed: set[ObjectKey] = set()
                for row in rows:
                    listed.add(row.key)
                    yield None
                for key in self._keys():
                    yield None if key in listed else self._delete(key)
                for row in rows:
                    yield self._upsert(row)

    def _keys(self) -> Iterator[ObjectKey]:
        """Iterate over the known objects; each may be deleted when it is reached."""
        for row in self._table.all(self._snapshot):
            yield row.key
        yield from tuple(self._overlay)

    def _get(self, key: ObjectKey) -> Resource | None:
        if key in self._overlay:
            return self._overlay[key]
        found: Resource | None = self._table.get(self._snapshot, key)
        return found

    def _upsert(self, row: Resource) -> ObjectChange | None:
        before = self._get(row.key)
        if row is before or row == before:
            return None
        self._overlay[row.key] = row
        return self._change("ADDED" if before is None else "MODIFIED", row.key)

    def _delete(self, key: ObjectKey) -> ObjectChange | None:
        if self._get(key) is None:
            return None
        if self._table.get(self._snapshot, key) is None:
            del self._overlay[key]
        else:
            self._overlay[key] = None
        return self._change("DELETED", key)

    def _change(
        self, change_type: Literal["ADDED", "MODIFIED", "DELETED"], key: ObjectKey
    ) -> ObjectChange:
        return ObjectChange(change_type, self._kind, *key)


def object_changes(
    known: KnownObjects,
    events: Observable[Event],
    clock: Callable[[], float] = time.perf_counter,
) -> Observable[Sequence[ObjectChange]]:
    """Return what the events of a kind change for one subscriber, which knows these objects.

    Events without a change emit nothing. A `Replace` is compared in later turns of the loop, in slices
    of `SLICE_SECONDS` by ``clock``; the events behind it wait for that.
    """

    def subscribe(
        observer: abc.ObserverBase[Sequence[ObjectChange]],
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        comparison = _Comparison(known, observer, clock)
        subscription = events.subscribe(
            comparison.add, observer.on_error, observer.on_completed, scheduler=scheduler
        )
        return CompositeDisposable(subscription, Disposable(comparison.cancel))

    return Observable(subscribe)


class _Comparison:
    """Compares events with what a subscriber knows, at once or, from a Replace on, in a task."""

    def __init__(
        self,
        known: KnownObjects,
        observer: abc.ObserverBase[Sequence[ObjectChange]],
        clock: Callable[[], float],
    ) -> None:
        self._known = known
        self._observer = observer
        self._clock = clock
        self._waiting: deque[Event] = deque()
        """Events to be compared: a Replace supersedes those before it."""
        self._task: asyncio.Task[None] | None = None

    def add(self, event: Event) -> None:
        """Compare an event now, or after the Replace that is being compared."""
        if isinstance(event, Replace):
            self._waiting.clear()
        elif self._task is None:
            try:
                self._emit([change for change in self._known.compare(event) if change is not None])
            except Exception as error:  # noqa: BLE001 - the error ends this subscription alone
                self._observer.on_error(error)
            return
        self._waiting.append(event)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def cancel(self) -> None:
        """End the comparison."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._compare(self._waiting.popleft())
        except Exception as error:  # noqa: BLE001 - the error ends this subscription alone
            self._observer.on_error(error)
        finally:
            self._task = None

    async def _compare(self, event: Event) -> None:
        """Compare an event in slices, with a turn of the loop for others after each."""
        found: list[ObjectChange] = []
        until = self._clock() + SLICE_SECONDS
        for change in self._known.compare(event):
            if change is not None:
                found.append(change)
            if self._clock() >= until:
                self._emit(found)
                found = []
                await asyncio.sleep(0)
                until = self._clock() + SLICE_SECONDS
        self._emit(found)

    def _emit(self, changes: Sequence[ObjectChange]) -> None:
        if changes:
            self._observer.on_next(changes)


class Backlog:
    """The changes that a reader has not taken yet: one for each object, in the order of the last.

    Changes of one object conflate: ADDED and then DELETED is nothing, DELETED and then ADDED is
    MODIFIED. So the backlog is bounded by the objects that the reader knows and those that exist,
    whatever the number of events and however slow the reader.
    """

    def __init__(self, changes: Observable[Sequence[ObjectChange]]) -> None:
        self._pending: dict[tuple[str, str, str], ObjectChange] = {}
        self._wake = asyncio.Event()
        self._error: Exception | None = None
        self._subscription = changes.subscribe(self._add, self._fail)

    def __len__(self) -> int:
        """Number of objects with changes that are not taken."""
        return len(self._pending)

    def close(self) -> None:
        """End the subscription."""
        self._subscription.dispose()
        self._pending.clear()

    async def read(self) -> AsyncIterator[Sequence[ObjectChange]]:
        """Yield what has accumulated; raises the stream's error."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._error is not None:
                raise self._error
            found, self._pending = tuple(self._pending.values()), {}
            if found:
                yield found

    def _add(self, changes: Sequence[ObjectChange]) -> None:
        for change in changes:
            key = (change.kind, change.namespace, change.name)
            before = self._pending.pop(key, None)
            joined = change if before is None else _conflate(before, change)
            if joined is not None:
                self._pending[key] = joined
        self._wake.set()

    def _fail(self, error: Exception) -> None:
        self._error = error
        self._wake.set()


def _conflate(before: ObjectChange, after: ObjectChange) -> ObjectChange | None:
    match before.type, after.type:
        case "ADDED", "DELETED":
            return None
        case "ADDED", _:
            return before
        case "DELETED", "ADDED":
            return msgspec.structs.replace(after, type="MODIFIED")
        case _:
            return after
