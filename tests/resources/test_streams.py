"""Streams shared by several subscribers: isolation, object changes, conflation."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec
import pytest
from reactivex import Observable
from reactivex.subject import Subject

from resources.meta import Resource
from resources.source import Delete, Event, Replace, Upsert
from resources.streams import (
    Backlog,
    KnownObjects,
    ObjectChange,
    guarded,
    isolated,
    object_changes,
)
from resources.tables import Tables
from statedb import Database
from tests.support import looptime
from tests.support.kinds import NODE

Changes = Sequence[ObjectChange]


def node(name: str, **labels: str) -> Any:  # noqa: ANN401 - a row
    return NODE.decode({"metadata": {"name": name, "labels": labels}})


def change(type_: Literal["ADDED", "MODIFIED", "DELETED"], name: str = "a") -> ObjectChange:
    return ObjectChange(type_, "Node", "", name)


def test_a_failing_subscriber_ends_alone() -> None:
    subject: Subject[int] = Subject()
    failures: list[Exception] = []
    stream = isolated(subject, failures.append)
    before: list[int] = []
    after: list[int] = []
    calls: list[int] = []

    def failing(item: int) -> None:
        calls.append(item)
        raise ValueError("a bug in one subscriber")

    stream.subscribe(before.append)
    stream.subscribe(failing)
    stream.subscribe(after.append)
    subject.on_next(1)
    subject.on_next(2)
    assert (before, after, calls) == ([1, 2], [1, 2], [1])
    assert [str(error) for error in failures] == ["a bug in one subscriber"]
    assert len(subject.observers) == 2


@pytest.mark.parametrize("error", [OSError("of the source"), None])
def test_the_end_of_a_stream_reaches_each_subscriber_though_one_fails(
    error: Exception | None,
) -> None:
    subject: Subject[int] = Subject()
    failures: list[Exception] = []
    stream = isolated(subject, failures.append)
    ends: list[Exception | None] = []

    def failing() -> None:
        raise ValueError("a bug in one subscriber")

    # The first one has no handler of errors.
    stream.subscribe(on_completed=failing)
    stream.subscribe(on_error=ends.append, on_completed=lambda: ends.append(None))
    if error is None:
        subject.on_completed()
    else:
        subject.on_error(error)
    assert ends == [error]
    assert [str(one) for one in failures] == [str(error or "a bug in one subscriber")]


def test_a_subscriber_that_leaves_during_an_item_disturbs_no_other() -> None:
    subject: Subject[int] = Subject()
    stream = isolated(subject)
    seen: list[int] = []
    first = stream.subscribe(lambda _: first.dispose())
    stream.subscribe(seen.append)
    subject.on_next(1)
    subject.on_next(2)
    assert seen == [1, 2]
    assert len(subject.observers) == 1


def test_a_failing_operator_ends_its_own_subscription_with_the_error() -> None:
    subject: Subject[int] = Subject()
    stream = isolated(subject)
    errors: list[Exception] = []
    seen: list[int] = []
    stream.map(lambda item: 1 // item).subscribe(seen.append, errors.append)
    stream.subscribe(seen.append)
    subject.on_next(0)
    subject.on_next(3)
    assert seen == [0, 3]
    assert [type(error) for error in errors] == [ZeroDivisionError]


def test_a_guarded_subscriber_stays_and_its_job_gets_the_error() -> None:
    subject: Subject[int] = Subject()
    errors: list[BaseException] = []
    seen: list[float] = []
    isolated(subject).subscribe(guarded(lambda item: seen.append(6 / item), errors.append))
    for item in (1, 0, 2):
        subject.on_next(item)
    assert seen == [6.0, 3.0]
    assert [type(error) for error in errors] == [ZeroDivisionError]


class KnownNodes:
    """A table of nodes, and the events after its snapshots."""

    def __init__(self, *rows: Resource) -> None:
        self.db = Database()
        self.tables = Tables(self.db)
        self.events: Subject[Event] = Subject()
        self.add(*rows)

    def add(self, *rows: Any) -> None:  # noqa: ANN401
        """Put rows into the table."""
        with self.db.write(self.tables.nodes) as txn:
            for row in rows:
                self.tables.nodes.upsert(txn, row)

    def changes(self, clock: Callable[[], float] = lambda: 0.0) -> Observable[Changes]:
        """Return the changes against what the table holds now; in one slice if the clock stands."""
        known = KnownObjects(NODE, self.tables.nodes, self.db.snapshot())
        return object_changes(known, self.events, clock)


async def turns(count: int = 3) -> None:
    """Let the loop turn."""
    for _ in range(count):
        await asyncio.sleep(0)


def test_events_become_changes_against_what_is_known() -> None:
    nodes = KnownNodes(node("a"), node("b"))
    found: list[list[tuple[str, str]]] = []

    async def scenario() -> None:
        nodes.changes().subscribe(lambda batch: found.append([(c.type, c.name) for c in batch]))
        for event in (
            Upsert(node("a")),
            Upsert(node("a", rack="1")),
            Upsert(node("c")),
            Delete(("", "x")),
            Replace((node("a", rack="2"), node("c"), node("d"))),
            Delete(("", "d")),
            Replace(()),
            Upsert(node("b")),
            Delete(("", "b")),
        ):
            nodes.events.on_next(event)
            await turns()

    asyncio.run(scenario())
    assert found == [
        [("MODIFIED", "a")],
        [("ADDED", "c")],
        [("DELETED", "b"), ("MODIFIED", "a"), ("ADDED", "d")],
        [("DELETED", "d")],
        [("DELETED", "a"), ("DELETED", "c")],
        [("ADDED", "b")],
        [("DELETED", "b")],
    ]


def test_each_subscription_compares_with_what_is_known_at_its_own_time() -> None:
    nodes = KnownNodes()
    found: list[str] = []
    nodes.changes().subscribe(lambda batch: found.append(f"first {batch[0].type}"))
    nodes.events.on_next(Upsert(node("a")))
    nodes.add(node("a"))
    nodes.changes().subscribe(lambda batch: found.append(f"second {batch[0].type}"))
    nodes.events.on_next(Upsert(node("a", rack="1")))
    assert found == ["first ADDED", "first MODIFIED", "second MODIFIED"]


def test_events_behind_a_list_are_compared_after_it() -> None:
    nodes = KnownNodes(node("a"))
    found: list[tuple[str, str]] = []

    async def scenario() -> None:
        nodes.changes().subscribe(lambda batch: found.extend((c.type, c.name) for c in batch))
        nodes.events.on_next(Replace(tuple(node(name) for name in "abc")))
        nodes.events.on_next(Upsert(node("d")))
        nodes.events.on_next(Delete(("", "a")))
        assert found == []
        await turns()

    asyncio.run(scenario())
    assert found == [("ADDED", "b"), ("ADDED", "c"), ("ADDED", "d"), ("DELETED", "a")]


def test_a_list_supersedes_the_events_that_wait() -> None:
    nodes = KnownNodes()
    found: list[tuple[str, str]] = []

    async def scenario() -> None:
        nodes.changes().subscribe(lambda batch: found.extend((c.type, c.name) for c in batch))
        for name in "abc":
            nodes.events.on_next(Replace((node(name),)))
            nodes.events.on_next(Upsert(node(f"{name}2")))
        await turns()

    asyncio.run(scenario())
    assert found == [("ADDED", "c"), ("ADDED", "c2")]


def test_a_list_of_fifty_thousand_objects_is_compared_in_slices_outside_the_producers_turn() -> (
    None
):
    count, watchers = 50_000, 2
    example = node("n")
    rows = [
        msgspec.structs.replace(
            example, metadata=msgspec.structs.replace(example.metadata, name=f"n{number}")
        )
        for number in range(count)
    ]
    nodes = KnownNodes(*rows[: count // 2])
    steps = 0

    def clock() -> float:
        """Run by the work: 10 microseconds per object, so that a slice is 200 objects."""
        nonlocal steps
        steps += 1
        return steps / 100_000

    found: list[ObjectChange] = []

    async def scenario() -> list[int]:
        subscriptions = [nodes.changes(clock).subscribe(found.extend) for _ in range(watchers)]
        nodes.events.on_next(Replace(tuple(rows[count // 4 :])))
        assert steps == 0
        slices = []
        while len(found) < watchers * count * 3 // 4:
            before = steps
            await asyncio.sleep(0)
            slices.append(steps - before)
        for subscription in subscriptions:
            subscription.dispose()
        return slices

    slices = asyncio.run(scenario())
    assert max(slices) <= watchers * 210
    types = Counter(one.type for one in found)
    assert types == {"DELETED": watchers * count // 4, "ADDED": watchers * count // 2}


def test_a_subscription_that_ends_ends_its_comparison() -> None:
    nodes = KnownNodes()
    found: list[Changes] = []

    async def scenario() -> None:
        subscription = nodes.changes().subscribe(found.append)
        nodes.events.on_next(Replace((node("a"),)))
        subscription.dispose()
        await turns()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())
    assert found == []
    assert not nodes.events.observers


@pytest.mark.parametrize("event", [Upsert(node("a")), Replace((node("a"),))])
def test_a_comparison_that_fails_ends_its_own_subscription_with_the_error(event: Event) -> None:
    nodes = KnownNodes()
    errors: list[Exception] = []

    async def scenario() -> None:
        known = KnownObjects(NODE, nodes.tables.nodes, nodes.db.snapshot())
        known.compare = lambda _: 1 // 0  # type: ignore[assignment,method-assign,return-value]
        object_changes(known, nodes.events).subscribe(on_error=errors.append)
        nodes.events.on_next(event)
        await turns()

    asyncio.run(scenario())
    assert [type(error) for error in errors] == [ZeroDivisionError]
    assert not nodes.events.observers


def taken(*changes: ObjectChange) -> Changes:
    """Return what a reader gets that comes after these changes."""
    subject: Subject[Changes] = Subject()

    async def scenario() -> Changes:
        backlog = Backlog(subject)
        for one in changes:
            subject.on_next([one])
        try:
            async with asyncio.timeout(1):
                return await anext(backlog.read())
        finally:
            backlog.close()
            assert not subject.observers

    return looptime.run(scenario())


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        (["ADDED", "MODIFIED"], ["ADDED"]),
        (["MODIFIED", "MODIFIED"], ["MODIFIED"]),
        (["MODIFIED", "DELETED"], ["DELETED"]),
        (["DELETED", "ADDED"], ["MODIFIED"]),
        (["ADDED", "DELETED", "ADDED"], ["ADDED"]),
        (["DELETED", "ADDED", "DELETED"], ["DELETED"]),
    ],
)
def test_changes_of_one_object_conflate(changes: list[Any], left: list[str]) -> None:
    assert [one.type for one in taken(*map(change, changes))] == left


def test_an_object_added_and_deleted_is_no_change() -> None:
    with pytest.raises(TimeoutError):
        taken(change("ADDED"), change("DELETED"))


def test_objects_are_read_in_the_order_of_their_last_change() -> None:
    found = taken(change("ADDED", "a"), change("ADDED", "b"), change("MODIFIED", "a"))
    assert [one.name for one in found] == ["b", "a"]


def test_a_thousand_changes_of_ten_objects_are_ten() -> None:
    found = taken(*(change("MODIFIED", str(number % 10)) for number in range(1000)))
    assert len(found) == 10


def test_objects_added_and_deleted_leave_no_backlog() -> None:
    subject: Subject[Changes] = Subject()

    async def scenario() -> int:
        backlog = Backlog(subject)
        for number in range(1000):
            subject.on_next([change("ADDED", str(number))])
            subject.on_next([change("DELETED", str(number))])
        return len(backlog)

    assert looptime.run(scenario()) == 0


def test_an_error_of_the_stream_reaches_the_reader() -> None:
    subject: Subject[Changes] = Subject()

    async def scenario() -> None:
        backlog = Backlog(subject)
        subject.on_error(ZeroDivisionError("of the source"))
        await anext(backlog.read())

    with pytest.raises(ZeroDivisionError, match="of the source"):
        looptime.run(scenario())
