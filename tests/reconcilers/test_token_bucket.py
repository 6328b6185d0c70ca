"""A token bucket: a rate, with a burst after a time without any."""

from __future__ import annotations

import pytest

from reconcilers.token_bucket import SHORTEST_PAUSE, TokenBucket


def test_a_burst_then_a_rate() -> None:
    bucket = TokenBucket(3, 0.5)
    for _ in range(3):
        assert bucket.pause(100.0) == 0.0
        bucket.take()
    assert bucket.pause(100.0) == 2.0
    assert bucket.pause(101.0) == 1.0
    assert bucket.pause(102.0) == 0.0


def test_it_fills_to_its_size() -> None:
    bucket = TokenBucket(3, 0.5)
    assert bucket.tokens(0.0) == 3
    bucket.take(3)
    assert [bucket.tokens(now) for now in (0.0, 2.0, 6.0, 1e9)] == [0, 1, 3, 3]


def test_several_tokens_can_be_needed_for_one() -> None:
    bucket = TokenBucket(3, 0.5)
    assert bucket.tokens(0.0) == 3
    bucket.take(2)
    assert (bucket.pause(0.0), bucket.pause(0.0, 3)) == (0.0, 4.0)


def test_another_rate_is_of_the_time_from_then_on() -> None:
    bucket = TokenBucket(1, 0.5)
    assert bucket.tokens(0.0) == 1
    bucket.take()
    bucket.rate = 0.1
    assert bucket.pause(0.0) == 10.0


def test_a_pause_is_no_shorter_than_a_clock_can_measure() -> None:
    """A rounded time would be waited for again and again."""
    bucket = TokenBucket(1, 3.0)
    assert bucket.tokens(0.0) == 1
    bucket.take()
    assert bucket.pause(1 / 3 - 1e-12) == SHORTEST_PAUSE


@pytest.mark.parametrize("now", [5.0, -5.0])
def test_a_time_that_goes_back_takes_no_token_away(now: float) -> None:
    bucket = TokenBucket(2, 1.0)
    assert bucket.tokens(10.0) == 2
    bucket.take()
    assert bucket.tokens(now) == 1
