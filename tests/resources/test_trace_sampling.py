"""The draw of traces: before a span is made, and for nothing where all are sent."""

from __future__ import annotations

import random

import pytest

from resources.trace_sampling import Roots


def test_a_part_of_the_traces_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    roots, drawn = Roots(), iter([0.0, 0.249, 0.25, 0.999])
    roots.share = 0.25
    monkeypatch.setattr(random, "random", lambda: next(drawn))
    assert [roots.draw() for _ in range(4)] == [True, True, False, False]


@pytest.mark.parametrize(("share", "begun"), [(0.0, False), (1.0, True)])
def test_none_or_all_traces_are_begun(share: float, begun: bool) -> None:
    roots = Roots()
    roots.share = share
    assert {roots.draw() for _ in range(1000)} == {begun}


def test_without_a_share_all_traces_are_begun_and_no_number_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(random, "random", lambda: pytest.fail("drawn"))
    assert Roots().draw()
