"""The deadlines of waits: a machine under load makes no test fail."""

from __future__ import annotations

import itertools

import pytest

from tests.support import wait
from tests.support.wait import FACTOR, PATIENCE, eventually, settles


class Clock:
    """A time that passes by sleeping alone."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(wait, "time", made)
    return made


@pytest.mark.parametrize("within", [PATIENCE, 200.0])
def test_a_check_has_the_seconds_of_its_deadline(clock: Clock, within: float) -> None:
    began, seconds = clock.now, within * FACTOR

    def check() -> None:
        assert clock.now >= began + seconds - 1

    eventually(check, within=within, interval=0.5)
    with pytest.raises(AssertionError, match=f"not within {seconds:g} s"):
        eventually(_never, within=within)
    assert clock.now - began < 2 * seconds + 1


def test_a_deadline_shorter_than_a_minute_is_refused(clock: Clock) -> None:
    with pytest.raises(ValueError, match="no deadline is shorter than 60 s"):
        eventually(_never, within=PATIENCE - 1)


@pytest.mark.parametrize(("holding", "checks"), [(None, 9), (0.5, 3), (1.0, 2)])
def test_what_settles_holds_for_so_long_and_begins_anew_when_it_breaks(
    clock: Clock, holding: float | None, checks: int
) -> None:
    began, passed = clock.now, []

    def check() -> float:
        seconds = clock.now - began
        assert 1 <= seconds < 1.5 or seconds >= 3
        passed.append(seconds)
        return seconds

    assert settles(check, stays=1.0, interval=0.125, holding=holding) == 4
    assert len([seconds for seconds in passed if seconds >= 3]) == checks


def test_what_takes_longer_is_looked_at_less_often(clock: Clock) -> None:
    began, looks = clock.now, []

    def check() -> None:
        looks.append(clock.now - began)
        assert looks[-1] >= 30

    eventually(check)
    pauses = [round(after - before, 6) for before, after in itertools.pairwise(looks)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.03, 0.15)
    for before, pause in zip(looks, pauses, strict=False):
        assert pause <= max(0.03, 0.1 * before + 1e-6)


def test_what_is_to_stay_is_looked_at_in_each_interval(clock: Clock) -> None:
    began, looks = clock.now, []

    def check() -> None:
        looks.append(clock.now)
        assert clock.now >= began + 5

    settles(check, stays=1.0, interval=0.03)
    assert all(b - a == pytest.approx(0.03) for a, b in itertools.pairwise(looks))
    assert looks[-1] >= began + 6


def _never() -> None:
    raise wait.NotReadyError("never")
