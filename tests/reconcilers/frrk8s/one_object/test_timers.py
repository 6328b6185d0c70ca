"""The timers of a neighbour."""

from __future__ import annotations

import pytest

from tests.reconcilers.frrk8s.one_object import broken, of_neighbor


def test_a_neighbor_has_the_timers_of_frr_unless_it_sets_its_own() -> None:
    session = of_neighbor().session
    assert (session.hold_time, session.keepalive_time, session.connect_time) == (180, 60, 60)
    session = of_neighbor(holdTime="9s", keepaliveTime="3s", connectTime="1m").session
    assert (session.hold_time, session.keepalive_time, session.connect_time) == (9, 3, 60)


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("holdTime", {"holdTime": "9s"}),
        ("keepaliveTime", {"keepaliveTime": "3s"}),
        ("holdTime", {"holdTime": "2s", "keepaliveTime": "1s"}),
        ("holdTime", {"holdTime": "65536s", "keepaliveTime": "1s"}),
        ("keepaliveTime", {"holdTime": "9s", "keepaliveTime": "10s"}),
        ("holdTime", {"holdTime": "nine", "keepaliveTime": "3s"}),
        ("connectTime", {"connectTime": "500ms"}),
        ("connectTime", {"connectTime": "65536s"}),
    ],
)
def test_timers_that_cannot_be(field: str, settings: dict[str, str]) -> None:
    assert [path for path, _ in broken(**settings)] == [field]


def test_a_hold_time_of_zero_has_no_keepalives() -> None:
    session = of_neighbor(holdTime="0s", keepaliveTime="0s").session
    assert (session.hold_time, session.keepalive_time) == (0, 0)
