"""Streams shared by several subscribers: an exception in one affects no other."""

from __future__ import annotations

import pytest
from reactivex.subject import Subject

from resources.streams import guarded, isolated


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
