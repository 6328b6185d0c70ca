"""Changes of the originated prefixes are done in slices, and never overtake each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from speaker.engine import sliced_work
from speaker.engine.instance.originated_prefixes import OriginatedPrefixes
from speaker.engine.sliced_work import SlicedWork
from speaker.nlri import prefix_to_text

A, B, C, BAD = (f"10.0.{number}.0/24" for number in range(4))


class Lab:
    """Originated prefixes whose steps take a slice each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sliced_work, "SLICE_UNITS", 1)
        self.errors: list[Exception] = []
        self.done: list[str] = []
        self.moved: list[str] = []
        self.work = SlicedWork(self.errors.append)
        self.originated = OriginatedPrefixes(self._update, self.work)

    def _update(self, route_set: None, changes: Mapping[Any, Mapping[bytes, Any]]) -> None:
        assert route_set is None
        for family, routes in changes.items():
            texts = [prefix_to_text(family, nlri) for nlri in routes]
            if texts == [BAD]:
                raise ValueError("bad")
            self.done += texts

    def update_moved(self, _: None, changes: Mapping[Any, Mapping[bytes, Any]]) -> None:
        """Note changes in another Loc-RIB."""
        for family, routes in changes.items():
            self.moved += [prefix_to_text(family, nlri) for nlri in routes]

    def settle(self) -> None:
        while self.work.pending:
            self.work.renew()


def test_a_change_follows_its_predecessor(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(monkeypatch)
    lab.originated.change([], [A, B])
    lab.originated.change([A, B], [C])
    lab.settle()
    assert lab.done == [A, B, A, B, C]


@pytest.mark.parametrize("slices", range(6))
def test_the_rest_is_done_in_another_table(slices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(monkeypatch)
    lab.originated.change([], [A, B])
    lab.originated.change([A, B], [C])
    for _ in range(slices):
        lab.work.renew()
    assert lab.originated.moved(lab.update_moved) is lab.originated
    lab.settle()
    assert lab.done + lab.moved == [A, B, A, B, C]


def test_equal_prefixes_are_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(monkeypatch)
    lab.originated.change([A], [A])
    assert not lab.work.pending
    assert lab.done == []


def test_a_change_that_fails_does_not_hold_up_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = Lab(monkeypatch)
    lab.originated.change([], [BAD])
    lab.originated.change([BAD], [BAD, A])
    lab.settle()
    assert (lab.done, [str(error) for error in lab.errors]) == ([A], ["bad"])
