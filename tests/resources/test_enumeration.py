"""Long lists in short sentences."""

from __future__ import annotations

import pytest

from resources.enumeration import enumerate_some, first_of


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((), ""),
        ((1,), "1"),
        ((1, 2), "1, 2"),
        ((1, 2, 3), "1, 2 and 1 more"),
        (range(9), "0, 1 and 7 more"),
    ],
)
def test_the_first_ones_are_named_and_the_others_counted(values: range, text: str) -> None:
    assert enumerate_some(values, shown=2) == text


@pytest.mark.parametrize(("count", "text"), [(1, "a"), (2, "a (and 1 more)")])
def test_the_others_are_counted(count: int, text: str) -> None:
    assert first_of("a", count) == text
