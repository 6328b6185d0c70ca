"""AS paths: octets, hop counts, the merge of RFC 6793 section 4.2.3, text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.attribute import (
    AS_CONFED_SEQUENCE,
    AS_CONFED_SET,
    AS_SEQUENCE,
    AS_SET,
    Segment,
    as_path_text,
    hop_count,
    prepend,
)
from speaker.attribute.as_path import decode_as_path, encode_as_path, merge_as4, needs_as4
from speaker.errors import Truncated

SEQ, SET = AS_SEQUENCE, AS_SET


@given(st.lists(st.integers(1, 2**32 - 1), min_size=1, max_size=700))
def test_a_long_sequence_goes_through_segments_of_255(asns: list[int]) -> None:
    path = (Segment(SEQ, tuple(asns)),)
    assert decode_as_path(encode_as_path(path, 4), 4) == path


@pytest.mark.parametrize("value", [b"\5\1\0\0\0\1", b"\2\0", b"\2\2\0\0\0\1", b"\2"])
def test_a_malformed_segment_is_rejected(value: bytes) -> None:
    with pytest.raises(Truncated):
        decode_as_path(value, 4)


def test_a_set_is_one_hop_and_confederation_segments_are_no_hops() -> None:
    path = (
        Segment(AS_CONFED_SEQUENCE, (1, 2)),
        Segment(SEQ, (3, 4)),
        Segment(SET, (5, 6)),
        Segment(AS_CONFED_SET, (7,)),
    )
    assert hop_count(path) == 3
    assert as_path_text(path) == "(1 2) 3 4 {5,6} [7]"


def test_as_numbers_beyond_two_octets_become_as_trans() -> None:
    octets = encode_as_path((Segment(SEQ, (65001, 400000)),), 2)
    assert decode_as_path(octets, 2) == (Segment(SEQ, (65001, 23456)),)


def test_the_path_of_a_four_octet_speaker_is_restored() -> None:
    path = (Segment(SEQ, (65001, 23456, 23456)),)
    assert merge_as4(path, (Segment(SEQ, (400000, 400001)),)) == (
        Segment(SEQ, (65001, 400000, 400001)),
    )


def test_leading_confederation_segments_are_kept_in_a_restored_path() -> None:
    """RFC 6793 section 4.2.3: in front, or next to a segment that is taken whole."""
    inside = Segment(AS_CONFED_SEQUENCE, (65001,))
    new = (Segment(SEQ, (400000,)),)
    assert merge_as4((inside, Segment(SEQ, (23456,))), new) == (inside, *new)
    path = (Segment(SEQ, (1,)), inside, Segment(SEQ, (23456,)))
    assert merge_as4(path, new) == (Segment(SEQ, (1,)), inside, *new)
    assert merge_as4((Segment(SEQ, (1, 23456)), inside), new) == (Segment(SEQ, (1, 400000)),)


def test_confederation_segments_in_an_as4_path_are_ignored() -> None:
    """RFC 6793 section 6."""
    as4 = (Segment(AS_CONFED_SEQUENCE, (400001,)), Segment(SEQ, (400000,)))
    assert merge_as4((Segment(SEQ, (23456,)),), as4) == (Segment(SEQ, (400000,)),)


def test_a_confederation_needs_no_as4_path() -> None:
    """RFC 6793 section 4.2.2: it is sent without them, and not at all without a reason."""
    assert not needs_as4((Segment(AS_CONFED_SEQUENCE, (400000,)), Segment(SEQ, (1,))))
    assert needs_as4((Segment(SEQ, (1, 400000)),))


def test_an_as4_path_that_is_longer_is_ignored() -> None:
    path = (Segment(SEQ, (65001,)),)
    assert merge_as4(path, (Segment(SEQ, (1, 2)),)) == path


def test_prepending_extends_the_first_sequence_or_makes_one() -> None:
    assert prepend((), 1) == (Segment(SEQ, (1,)),)
    assert prepend((Segment(SEQ, (2,)),), 1) == (Segment(SEQ, (1, 2)),)
    assert prepend((Segment(SET, (2,)),), 1) == (Segment(SEQ, (1,)), Segment(SET, (2,)))
