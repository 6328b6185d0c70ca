"""Intervals change behind a Poll Sequence where RFC 5880 section 6.8.3 demands it."""

from __future__ import annotations

import pytest

from speaker.bfd.poll_sequence import PollSequence

MS = 1_000


def intervals(poll: PollSequence) -> tuple[int, int]:
    return (poll.tx // MS, poll.rx // MS)


def test_while_the_session_is_not_up_intervals_are_in_use_at_once() -> None:
    poll = PollSequence(1000 * MS, 300 * MS, active=True)
    poll.apply(2000 * MS, 100 * MS, up=False)
    assert intervals(poll) == (2000, 100)
    assert not poll.active


@pytest.mark.parametrize(
    ("desired", "required", "at_once"),
    [
        (100, 300, (100, 300)),
        (900, 300, (300, 300)),
        (300, 900, (300, 900)),
        (300, 100, (300, 300)),
    ],
)
def test_longer_transmission_and_shorter_reception_wait_for_the_final(
    desired: int, required: int, at_once: tuple[int, int]
) -> None:
    poll = PollSequence(300 * MS, 300 * MS)
    poll.apply(desired * MS, required * MS, up=True)
    assert poll.active
    assert intervals(poll) == at_once
    poll.end(desired * MS, required * MS)
    assert not poll.active
    assert intervals(poll) == (desired, required)


def test_equal_intervals_begin_no_poll_sequence() -> None:
    poll = PollSequence(300 * MS, 300 * MS)
    poll.apply(300 * MS, 300 * MS, up=True)
    assert not poll.active


def test_a_change_during_a_poll_sequence_waits_for_the_next_sequence() -> None:
    poll = PollSequence(300 * MS, 300 * MS)
    poll.apply(500 * MS, 300 * MS, up=True)
    poll.apply(900 * MS, 300 * MS, up=True)
    poll.end(900 * MS, 300 * MS)
    assert (poll.active, intervals(poll)) == (False, (300, 300)), "a Final may be of 500 ms"
    assert poll.follows
    poll.begin_next()
    poll.end(900 * MS, 300 * MS)
    assert (poll.follows, intervals(poll)) == (False, (900, 300))
