"""Figures of two checkouts: a ratio over the limit fails, and so does a figure that one side lacks."""

from __future__ import annotations

import pytest

from bench.compare import report


@pytest.mark.parametrize(
    ("sides", "status"),
    [
        ({"other": [2.0, 2.0, 9.0], "this": [2.1, 2.1, 9.0]}, 0),
        ({"other": [2.0], "this": [2.2]}, 1),
        ({"other": [2.0]}, 1),
        ({"this": [2.0]}, 1),
    ],
)
def test_medians_are_compared_and_a_figure_of_one_side_fails(
    sides: dict[str, list[float]], status: int
) -> None:
    assert report({"starts, s": sides}, limit=1.05) == status
