"""The largest value of the last minutes."""

from __future__ import annotations

from speaker.bfd.recent import WINDOW, RecentMaximum


def test_a_value_is_kept_for_one_to_two_windows() -> None:
    recent = RecentMaximum()
    recent.note(7, 0)
    recent.note(90, WINDOW - 1)
    recent.note(8, WINDOW)
    assert recent.at(WINDOW) == 90
    assert recent.at(2 * WINDOW - 1) == 90
    assert recent.at(2 * WINDOW) == 8
    assert recent.at(3 * WINDOW) == 0


def test_after_a_long_time_without_values_there_is_none() -> None:
    recent = RecentMaximum()
    recent.note(90, 0)
    assert recent.at(9 * WINDOW) == 0


def test_cleared_values_are_forgotten() -> None:
    recent = RecentMaximum()
    recent.note(90, 0)
    recent.note(80, WINDOW)
    recent.clear()
    assert recent.at(WINDOW) == 0
    recent.note(7, WINDOW)
    assert recent.at(WINDOW) == 7
