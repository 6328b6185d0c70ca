"""Deadlines of sessions against the simplest model: a dictionary."""

from __future__ import annotations

import weakref

from hypothesis import given
from hypothesis import strategies as st

from speaker.bfd.schedule import NEVER, Schedule, Scheduled

MOST_ENTRIES = 200
"""Of the heap of five sessions."""


class Session(Scheduled):
    """What a schedule has to know of one."""


def sessions(count: int) -> tuple[Schedule[Session], list[Session]]:
    return Schedule(), [Session() for _ in range(count)]


def test_sessions_are_due_in_the_order_of_their_deadlines() -> None:
    schedule, (first, second, third) = sessions(3)
    schedule.start(third, 300)
    schedule.start(first, 100)
    schedule.start(second, 200)
    assert schedule.next_deadline() == 100
    assert schedule.expire(99) == []
    assert schedule.expire(200) == [first, second]
    assert schedule.expire(300) == [third]
    assert schedule.next_deadline() is None


def test_sessions_of_one_moment_are_due_in_the_order_in_which_they_were_started() -> None:
    schedule, all_of_them = sessions(5)
    for session in all_of_them:
        schedule.start(session, 50)
    assert schedule.expire(50) == all_of_them


def test_a_deadline_that_moves_later_is_one_write() -> None:
    schedule, (session,) = sessions(1)
    schedule.start(session, 90)
    entries = list(schedule._heap)
    schedule.start(session, 120)
    assert schedule._heap == entries
    assert schedule.expire(100) == []
    assert schedule.next_deadline() == 120
    assert schedule.expire(120) == [session]


def test_a_deadline_that_moves_earlier_is_met_once() -> None:
    schedule, (session,) = sessions(1)
    schedule.start(session, 90)
    schedule.start(session, 10)
    assert schedule.next_deadline() == 10
    assert schedule.expire(10) == [session]
    assert schedule.next_deadline() is None
    assert schedule.expire(1000) == []


def test_a_session_that_is_due_has_no_deadline_before_it_is_started_again() -> None:
    schedule, (session,) = sessions(1)
    schedule.start(session, 10)
    assert schedule.expire(10) == [session]
    assert session.deadline == NEVER
    schedule.start(session, 20)
    assert schedule.expire(20) == [session]


def test_a_stopped_session_is_never_due() -> None:
    schedule, (session, never_started) = sessions(2)
    schedule.start(session, 10)
    schedule.stop(session)
    schedule.stop(never_started)
    assert schedule.next_deadline() is None
    assert schedule.expire(1000) == []
    schedule.start(session, 2000)
    assert schedule.expire(2000) == [session]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("start"), st.integers(0, 4), st.integers(0, 50)),
            st.tuples(st.just("stop"), st.integers(0, 4), st.just(0)),
            st.tuples(st.just("wait"), st.just(0), st.integers(0, 10)),
            st.tuples(st.just("look"), st.just(0), st.just(0)),
        )
    ),
    st.integers(1, 40),
)
def test_sessions_are_due_exactly_as_in_a_dictionary_of_deadlines(
    steps: list[tuple[str, int, int]], times: int
) -> None:
    """The steps are repeated, so that the heap is made anew in between."""
    schedule, each = sessions(5)
    model: dict[Session, int] = {}
    now = 0
    for what, number, value in steps * times:
        session = each[number]
        if what == "start":
            schedule.start(session, now + value)
            model[session] = now + value
        elif what == "stop":
            schedule.stop(session)
            model.pop(session, None)
        elif what == "wait":
            now += value
            due = [other for other, deadline in model.items() if deadline <= now]
            found = schedule.expire(now)
            assert set(found) == set(due)
            assert len(found) == len(due)
            for other in due:
                del model[other]
        else:
            upcoming = schedule.next_deadline()
            assert (upcoming is None) == (not model)
            assert upcoming is None or upcoming <= min(model.values())
        assert {s: s.deadline for s in each if s.deadline < NEVER} == model
        assert len(schedule._heap) < MOST_ENTRIES


def test_a_million_restarts_leave_the_heap_small() -> None:
    schedule, (early, late, moved, stopped, other) = sessions(5)
    schedule.start(early, 0)
    schedule.start(other, NEVER - 1)
    most = 0
    for time in range(250_000):
        schedule.start(late, 2_000_000 + time)
        schedule.start(moved, 1_000_000 - time)
        schedule.start(stopped, 1_500_000 - time)
        schedule.stop(stopped)
        most = max(most, len(schedule._heap))
    assert most < MOST_ENTRIES
    assert schedule.next_deadline() == 0
    assert schedule.expire(1_000_000) == [early, moved]
    assert schedule.expire(3_000_000) == [late]
    assert schedule.next_deadline() == NEVER - 1


def test_sessions_that_come_and_go_are_not_kept_until_their_deadlines() -> None:
    schedule, (stays,) = sessions(1)
    schedule.start(stays, 10)
    gone = []
    for number in range(10_000):
        session = Session()
        gone.append(weakref.ref(session))
        schedule.start(session, 1_000_000 + number)
        schedule.stop(session)
        del session
    assert sum(reference() is not None for reference in gone) < MOST_ENTRIES
    assert schedule.expire(10) == [stays]
