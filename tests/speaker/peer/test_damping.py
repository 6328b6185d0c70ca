"""Idle hold times after failures, and backoff between connection attempts."""

from __future__ import annotations

import random

import pytest

from speaker.peer.damping import MAX_IDLE_HOLD_SECONDS, STABLE_SECONDS, Damping, retry_after


def damping() -> Damping:
    return Damping(random.Random(1))  # noqa: S311  a seed, no secret


def test_each_failure_doubles_the_pause_up_to_a_limit() -> None:
    it = damping()
    pauses = [it.idle_hold(1, None, lost=False) for _ in range(12)]
    for number, pause in enumerate(pauses):
        nominal = min(2.0**number, MAX_IDLE_HOLD_SECONDS)
        assert 0.75 * nominal <= pause <= nominal


def test_a_stable_session_that_was_lost_starts_again_at_once() -> None:
    it = damping()
    for _ in range(5):
        it.idle_hold(1, None, lost=False)
    assert it.idle_hold(1, STABLE_SECONDS, lost=True) == 0.0
    assert it.idle_hold(1, None, lost=False) <= 1.0


def test_a_session_that_flaps_is_not_stable() -> None:
    it = damping()
    pauses = [it.idle_hold(1, STABLE_SECONDS - 1, lost=True) for _ in range(5)]
    assert pauses[-1] > 10


def test_a_new_configuration_resets_the_damping() -> None:
    it = damping()
    for _ in range(5):
        it.idle_hold(1, None, lost=False)
    it.reset()
    assert it.idle_hold(1, None, lost=False) <= 1.0


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 1), (1, 1), (2, 2), (3, 4), (8, 120), (10_000, 120)]
)
def test_retry_intervals_grow_up_to_the_connect_retry_time(failures: int, seconds: int) -> None:
    assert retry_after(failures, 120) == seconds


def test_a_short_connect_retry_time_is_kept() -> None:
    assert retry_after(5, 1) == 1
