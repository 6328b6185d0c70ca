"""Changes of the originated prefixes are done in slices, and never overtake each other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from speaker.engine.instance.originated_prefixes import OriginatedPrefixes
from speaker.engine.sliced_work import SLICE_UNITS, SlicedWork, Steps


class Lab:
    """Originated prefixes whose steps take a slice each."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self.done: list[str] = []
        self.work = SlicedWork(self.errors.append)
        self.originated = OriginatedPrefixes(self._originate, self.work)

    def _originate(self, before: Sequence[str], after: Sequence[str]) -> Steps:
        if after == ["bad"]:
            yield 1
            raise ValueError("bad")
        for prefix in sorted({*before} ^ {*after}):
            self.done.append(prefix)
            yield SLICE_UNITS


def test_a_change_follows_the_one_before_it() -> None:
    lab = Lab()
    lab.originated.change([], ["a", "b"])
    lab.originated.change(["a", "b"], ["c"])
    while lab.work.pending:
        lab.work.renew()
    assert lab.done == ["a", "b", "a", "b", "c"]


@pytest.mark.parametrize("slices", [0, 1, 3])
def test_the_rest_can_be_done_at_once(slices: int) -> None:
    lab = Lab()
    lab.originated.change([], ["a", "b"])
    lab.originated.change(["a", "b"], ["c"])
    for _ in range(slices):
        lab.work.renew()
    lab.originated.complete()
    assert lab.done == ["a", "b", "a", "b", "c"]
    while lab.work.pending:
        lab.work.renew()
    assert len(lab.done) == 5, "nothing is left to do"


def test_equal_prefixes_are_no_change() -> None:
    lab = Lab()
    lab.originated.change(["a"], ["a"])
    lab.originated.complete()
    assert lab.done == []


def test_a_change_that_fails_does_not_hold_up_the_next_one() -> None:
    lab = Lab()
    lab.originated.change([], ["bad"])
    lab.originated.change(["bad"], ["bad", "a"])
    while lab.work.pending:
        lab.work.renew()
    assert (lab.done, [str(error) for error in lab.errors]) == (["a"], ["bad"])
