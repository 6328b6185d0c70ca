"""Durations in the notation of Go."""

from __future__ import annotations

import pytest

from resources.durations import NANOSECONDS, duration_errors, parse_duration

MS = NANOSECONDS // 1000


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("90s", 90 * NANOSECONDS),
        ("1m30s", 90 * NANOSECONDS),
        ("1h1m1.5s", 3661 * NANOSECONDS + 500 * MS),
        ("29500ms", 29500 * MS),
        ("0", 0),
        ("0s", 0),
        ("-0", 0),
        ("+5s", 5 * NANOSECONDS),
        ("-1s", -NANOSECONDS),
        (".5s", 500 * MS),
        ("1.s", NANOSECONDS),
        ("3us2µs1μs", 6000),
        ("1.9ns", 1),
    ],
)
def test_a_duration_is_read_as_go_reads_it(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    ["", "1", "1d", "s", ".s", "1s ", " 1s", "1s1", "1S", "9999999h", "--1s", "+", "\uff11s"],
)
def test_what_is_no_duration_is_named(text: str) -> None:
    [error] = duration_errors(text, "spec.holdTime")
    assert error.path == "spec.holdTime"
    assert repr(text) in error.message


def test_a_long_text_is_rejected_at_once_and_cut_in_the_message() -> None:
    [error] = duration_errors("1s" * 500_000, "spec.holdTime")
    assert len(error.message) < 200
