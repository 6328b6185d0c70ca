"""AS path patterns against a plain recursive definition."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.attribute import AS_SEQUENCE, AsPath, Segment
from speaker.attribute.as_path import AS_CONFED_SEQUENCE, AS_SET
from speaker.rib.policy.as_path import AsPathPattern

WORDS = st.lists(st.sampled_from(["1", "2", "1..2", "3..9", "?", "*"]), max_size=7)
HOPS = st.lists(st.integers(1, 4), max_size=8)


def sequence(*asns: int) -> AsPath:
    return (Segment(AS_SEQUENCE, asns),) if asns else ()


def reference(words: list[str], hops: list[int]) -> bool:
    """The meaning, with no thought for time."""
    if not words:
        return not hops
    word, *rest = words
    if word == "*":
        return any(reference(rest, hops[n:]) for n in range(len(hops) + 1))
    if not hops:
        return False
    low, _, high = word.partition("..")
    fits = word == "?" or int(low) <= hops[0] <= int(high or low)
    return fits and reference(rest, hops[1:])


@given(WORDS, HOPS)
def test_a_pattern_matches_its_paths(words: list[str], hops: list[int]) -> None:
    assert AsPathPattern(" ".join(words)).matches(sequence(*hops)) == reference(words, hops)


def test_a_set_is_one_hop_of_any_member_and_confederation_segments_are_ignored() -> None:
    path = (
        Segment(AS_CONFED_SEQUENCE, (64512,)),
        Segment(AS_SEQUENCE, (1,)),
        Segment(AS_SET, (2, 3)),
    )
    assert AsPathPattern("1 3").matches(path)
    assert AsPathPattern("1 ?").matches(path)
    assert not AsPathPattern("1 2 3").matches(path)


def test_a_long_path_and_many_stars_take_bounded_time() -> None:
    path = sequence(*[1] * 750)
    begin = time.process_time()
    assert not AsPathPattern("* 1 " * 20 + "2").matches(path)
    assert time.process_time() - begin < 0.5


@pytest.mark.parametrize("text", ["AS1", "1..", "9..1", "-1", "4294967296", "_1_"])
def test_text_that_is_no_pattern_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is not an AS number"):
        AsPathPattern(text)
