"""Unix time of a monotonic clock's moments, in virtual time."""

from __future__ import annotations

import pytest

from speaker.unix_time import STEP_SECONDS, UnixTime
from tests.support.two_clocks import TwoClocks

STEPS = (30.0, -30.0, 86_400.0, -86_400.0, 0.02, -0.02)


@pytest.fixture
def clocks() -> TwoClocks:
    return TwoClocks()


@pytest.fixture
def unix_time(clocks: TwoClocks) -> UnixTime:
    return UnixTime(clocks.clock, clocks.wall_clock)


def test_a_moment_has_the_same_unix_time_whenever_it_is_read(
    clocks: TwoClocks, unix_time: UnixTime
) -> None:
    before = unix_time.offset()
    assert before == clocks.ahead
    for wait in (0.0, 0.3, 0.0, 20.0, 0.004):
        clocks.wait = wait
        assert unix_time.offset() == before, wait
    clocks.wait, clocks.now = 0.0, clocks.now + 86_400
    assert unix_time.offset() == before


@pytest.mark.parametrize("step", STEPS)
def test_moments_move_with_a_step_of_the_clock(
    clocks: TwoClocks, unix_time: UnixTime, step: float
) -> None:
    moment = clocks.now
    before = unix_time.offset()
    clocks.now += 3600
    clocks.ahead += step
    age = clocks.wall_clock() - (moment + unix_time.offset())
    assert age == pytest.approx(3600, abs=1e-5), "no step of the clock makes a session older"
    assert unix_time.offset() - before == pytest.approx(step, abs=1e-5)


@pytest.mark.parametrize("step", [0.9 * STEP_SECONDS, -0.9 * STEP_SECONDS])
def test_a_correction_of_milliseconds_moves_nothing(
    clocks: TwoClocks, unix_time: UnixTime, step: float
) -> None:
    before = unix_time.offset()
    clocks.ahead += step
    assert unix_time.offset() == before


def test_a_step_within_a_long_wait_is_noticed_without_it(
    clocks: TwoClocks, unix_time: UnixTime
) -> None:
    """As long as the two clocks are read 20 s apart, five of them may be the wait as well."""
    unix_time.offset()
    clocks.wait, clocks.ahead = 20.0, clocks.ahead + 5
    unix_time.offset()
    clocks.wait = 0.0
    assert unix_time.offset() == clocks.ahead


def test_the_first_reading_has_the_middle_of_a_wait(clocks: TwoClocks, unix_time: UnixTime) -> None:
    clocks.wait = 2.0
    assert unix_time.offset() == clocks.ahead
