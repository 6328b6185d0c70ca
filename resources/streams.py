"""Streams that several subscribers share: isolation, changes of objects, backlogs of slow readers.

A reactivex Subject raises a subscriber's exception into the producer, and the subscribers behind it
miss the item. `isolated` confines it to that subscriber, `guarded` hands it to the subscriber's job.
Nothing here uses a scheduler or a thread: an item is delivered in the producer's turn of the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar

import msgspec
import reactivex
from reactivex import Observable, abc
from reactivex.disposable import SingleAssignmentDisposable

from resources.kind import Kind
from resources.meta import ObjectKey, Resource
from resources.source import Delete, Event, Replace, Upsert

T = TypeVar("T")
P = ParamSpec("P")


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


def object_changes(
    kind: Kind[Any], events: Observable[Event], known: Callable[[], Iterable[Resource]]
) -> Observable[Sequence[ObjectChange]]:
    """Return what each event of a kind changes, compared with the objects before it.

    ``known`` returns the objects at the time of a subscription. Events without a change emit nothing.
    """

    def changes(_: abc.SchedulerBase) -> Observable[Sequence[ObjectChange]]:
        objects = {row.key: row for row in known()}
        return events.map(lambda event: _apply(kind, objects, event)).filter(bool)

    return reactivex.defer(changes)


def _apply(
    kind: Kind[Any], objects: dict[ObjectKey, Resource], event: Event
) -> Sequence[ObjectChange]:
    match event:
        case Replace(rows):
            wanted: dict[ObjectKey, Resource | None] = {row.key: row for row in rows}
            wanted = dict.fromkeys(key for key in objects if key not in wanted) | wanted
        case Upsert(row):
            wanted = {row.key: row}
        case Delete(key):
            wanted = {key: None} if key in objects else {}
    found: list[ObjectChange] = []
    for (namespace, name), row in wanted.items():
        before = objects.get((namespace, name))
        if row is None:
            del objects[namespace, name]
            found.append(ObjectChange("DELETED", kind.name, namespace, name))
        elif row != before:
            objects[namespace, name] = row
            done: Literal["ADDED", "MODIFIED"] = "ADDED" if before is None else "MODIFIED"
            found.append(ObjectChange(done, kind.name, namespace, name))
    return found


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
