"""Sets as integers: the same as sets of numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconcilers.metallb.bit_sets import (
    ROWS_AT_ONCE,
    bits_of,
    chosen,
    first,
    following,
    members,
    transposed,
)

NUMBERS = st.sets(st.integers(0, 90))


@given(NUMBERS)
def test_the_members_of_a_set_come_in_order(numbers: set[int]) -> None:
    bits = bits_of(numbers)
    assert list(members(bits)) == sorted(numbers)
    assert list(chosen(range(91), bits)) == sorted(numbers)
    assert first(bits) == min(numbers, default=-1)


@given(NUMBERS, st.integers(0, 90))
def test_the_following_member_is_the_next_or_else_the_first(numbers: set[int], number: int) -> None:
    later = {one for one in numbers if one > number}
    assert following(bits_of(numbers), number) == min(later or numbers, default=-1)


@given(st.lists(NUMBERS, max_size=9))
def test_a_transposed_relation_has_the_rows_of_each_number(rows: list[set[int]]) -> None:
    found = transposed([bits_of(row) for row in rows], 91)
    assert [set(members(bits)) for bits in found] == [
        {i for i, row in enumerate(rows) if number in row} for number in range(91)
    ]


def test_more_rows_than_are_transposed_at_once() -> None:
    count = 2 * ROWS_AT_ONCE + 3
    assert transposed([1] * count, 2) == [(1 << count) - 1, 0]
    assert transposed([0] * count, 0) == []
