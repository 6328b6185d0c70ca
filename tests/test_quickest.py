"""The best time of several attempts: what one attempt waits for a processor fails no test."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tests.support import quickest
from tests.support.quickest import ATTEMPTS, once_within


class Attempts:
    """Attempts of which each takes so long, by a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, took: Iterator[float]) -> None:
        self.numbers: list[int] = []
        self._now, self._took = 0.0, took
        monkeypatch.setattr(quickest, "time", SimpleNamespace(monotonic=lambda: self._now))

    def attempt(self, number: int) -> None:
        self.numbers.append(number)
        self._now += next(self._took)


def test_one_attempt_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Attempts(monkeypatch, iter((6.0, 1.0, 0.9)))
    once_within(1, made.attempt)
    assert made.numbers == [0, 1, 2]


def test_what_polls_makes_each_attempt_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Attempts(monkeypatch, iter((5.0,) * ATTEMPTS))
    with pytest.raises(AssertionError, match=r"less than 1 s: \[5\.0, 5\.0, "):
        once_within(1, made.attempt)
