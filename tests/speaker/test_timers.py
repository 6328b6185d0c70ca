"""Deadlines against the simplest model: a dictionary."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from speaker.timers import Timers


def test_a_deadline_that_moves_later_does_not_fire_early() -> None:
    timers: Timers[str] = Timers()
    timers.start("hold", 90.0)
    timers.start("hold", 120.0)
    assert timers.expire(100.0) == []
    assert timers.expire(120.0) == [("hold", 120.0)]


def test_a_deadline_that_moves_earlier_fires_then() -> None:
    timers: Timers[str] = Timers()
    timers.start("hold", 90.0)
    timers.start("hold", 10.0)
    assert timers.next_deadline() == 10.0
    assert timers.expire(10.0) == [("hold", 10.0)]
    assert timers.expire(1000.0) == []


def test_a_stopped_timer_never_fires() -> None:
    timers: Timers[str] = Timers()
    timers.start("hold", 1.0)
    timers.stop("hold")
    timers.stop("never started")
    assert timers.next_deadline() is None
    assert timers.expire(2.0) == []


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("start"), st.integers(0, 4), st.floats(0, 50)),
            st.tuples(st.just("stop"), st.integers(0, 4), st.just(0.0)),
            st.tuples(st.just("wait"), st.just(0), st.floats(0, 10)),
        )
    )
)
def test_timers_fire_exactly_as_a_dictionary_of_deadlines_would(
    steps: list[tuple[str, int, float]],
) -> None:
    timers: Timers[int] = Timers()
    model: dict[int, float] = {}
    now = 0.0
    for what, key, value in steps:
        if what == "start":
            timers.start(key, now + value)
            model[key] = now + value
        elif what == "stop":
            timers.stop(key)
            model.pop(key, None)
        else:
            now += value
            due = {k: d for k, d in model.items() if d <= now}
            assert dict(timers.expire(now)) == due
            for k in due:
                del model[k]
        upcoming = timers.next_deadline()
        assert (upcoming is None) == (not model)
        if upcoming is not None:
            assert upcoming <= min(model.values())
        assert len(timers) == len(model)


def test_stopped_timers_are_not_kept_until_their_deadline() -> None:
    timers: Timers[int] = Timers()
    for key in range(5):
        timers.start(key, 1000.0 + key)
    for key in range(100, 10_000):
        timers.start(key, 60.0 + key)
        timers.stop(key)
        assert len(timers._heap) < 200
    assert timers.next_deadline() == 1000.0
    assert timers.expire(1002.0) == [(0, 1000.0), (1, 1001.0), (2, 1002.0)]
    assert len(timers) == 2
