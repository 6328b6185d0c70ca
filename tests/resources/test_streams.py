"""Streams shared by several subscribers: isolation, object changes, conflation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import pytest
from reactivex.subject import Subject

from resources.meta import Resource
from resources.source import Delete, Event, Replace, Upsert
from resources.streams import (
    Backlog,
    ObjectChange,
    guarded,
    isolated,
    object_changes,
)
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


def test_events_become_changes_against_what_is_known() -> None:
    subject: Subject[Event] = Subject()
    known: list[Resource] = [node("a"), node("b")]
    found: list[list[tuple[str, str]]] = []
    changes = object_changes(NODE, subject, lambda: known)
    changes.subscribe(lambda batch: found.append([(one.type, one.name) for one in batch]))
    subject.on_next(Upsert(node("a")))
    subject.on_next(Upsert(node("a", rack="1")))
    subject.on_next(Upsert(node("c")))
    subject.on_next(Delete(("", "x")))
    subject.on_next(Replace((node("a", rack="2"), node("c"), node("d"))))
    subject.on_next(Delete(("", "d")))
    subject.on_next(Replace(()))
    assert found == [
        [("MODIFIED", "a")],
        [("ADDED", "c")],
        [("DELETED", "b"), ("MODIFIED", "a"), ("ADDED", "d")],
        [("DELETED", "d")],
        [("DELETED", "a"), ("DELETED", "c")],
    ]


def test_each_subscription_compares_with_what_is_known_at_its_own_time() -> None:
    subject: Subject[Event] = Subject()
    known: list[Resource] = []
    changes = object_changes(NODE, subject, lambda: known)
    found: list[str] = []
    changes.subscribe(lambda batch: found.append(f"first {batch[0].type}"))
    subject.on_next(Upsert(node("a")))
    known.append(node("a"))
    changes.subscribe(lambda batch: found.append(f"second {batch[0].type}"))
    subject.on_next(Upsert(node("a", rack="1")))
    assert found == ["first ADDED", "first MODIFIED", "second MODIFIED"]


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
