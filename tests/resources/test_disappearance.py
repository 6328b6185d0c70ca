"""How long the loss of many objects is doubted."""

from __future__ import annotations

import pytest

from resources.disappearance import Disappearance, is_mass


@pytest.mark.parametrize(
    ("known", "missing", "listed", "expected"),
    [
        (1, 1, 0, True),
        (50, 50, 0, True),
        (50, 25, 25, True),
        (4, 2, 2, True),
        (50, 10, 40, False),
        (50, 11, 39, True),
        (2, 1, 1, False),
        (1, 1, 1, False),
        (0, 0, 0, False),
        (50, 0, 50, False),
    ],
)
def test_all_objects_or_more_than_a_fifth_are_a_mass(
    known: int, missing: int, listed: int, expected: bool
) -> None:
    assert is_mass(known, missing, listed) is expected


def test_an_outage_between_two_readings_confirms_nothing() -> None:
    doubt = Disappearance(60.0)
    assert not doubt.confirm({"a"}, 0.0)
    assert not doubt.confirm({"a"}, 30.0)
    doubt.interrupt()
    assert not doubt.confirm({"a"}, 1000.0)
    assert doubt.confirmed == 30.0
    assert doubt.confirm({"a"}, 1030.0)


def test_fewer_missing_objects_go_on_and_others_start_anew() -> None:
    doubt = Disappearance(60.0)
    doubt.confirm({"a", "b"}, 0.0)
    assert not doubt.confirm({"a"}, 59.0)
    assert doubt.confirm({"a"}, 60.0)
    assert not doubt.confirm({"a", "c"}, 61.0)


def test_without_a_hold_time_the_first_reading_is_believed() -> None:
    assert Disappearance(0.0).confirm({"a"}, 5.0)
