"""What an agent says of its host."""

from __future__ import annotations

import pytest

from cells.serve.host import TIME_ERROR, UNKNOWN_ERROR, is_synchronized


@pytest.mark.parametrize(
    ("state", "error", "expected"),
    [
        pytest.param(0, 2000, True, id="by the kernel's own state"),
        pytest.param(TIME_ERROR, 2000, True, id="by chrony without rtcsync"),
        pytest.param(TIME_ERROR, UNKNOWN_ERROR, False, id="nothing corrects the clock"),
        pytest.param(-1, 0, None, id="not permitted"),
    ],
)
def test_a_clock_is_synchronized(state: int, error: int, expected: bool | None) -> None:
    assert is_synchronized(state, error) is expected
