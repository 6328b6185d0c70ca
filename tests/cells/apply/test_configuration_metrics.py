"""Whether the configuration is current, and since when it is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from reactivex.subject import Subject

from cells.apply.configuration_metrics import ConfigurationMetrics
from cells.hive import Group
from cells.sources.resources import FollowedSource

if TYPE_CHECKING:
    from cells.apply.loop import ApplyLoop
    from cells.intent.cell import IntentLoop


class Bench:
    """The parts that decide, and a clock."""

    def __init__(self) -> None:
        self.rounds: Subject[None] = Subject()
        self.intent = SimpleNamespace(is_current=False)
        self.apply = SimpleNamespace(is_current=True, rounds=self.rounds)
        self.kubernetes = SimpleNamespace(is_current=True)
        self.now = 1000.0
        self.metrics = ConfigurationMetrics(
            cast("IntentLoop", self.intent),
            cast("ApplyLoop", self.apply),
            Group[FollowedSource]((self.kubernetes,)),
            lambda: self.now,
        )

    def read(self) -> tuple[float, float]:
        """Return what a scrape has: whether it is current, and when it was."""
        current, last = self.metrics.collect()
        return current.samples[0].value, last.samples[0].value


def test_before_the_first_round_it_never_was() -> None:
    assert Bench().read() == (0, 0)


def test_it_is_current_once_everything_is_applied() -> None:
    bench = Bench()
    bench.intent.is_current = True
    assert bench.read() == (1, 1000)
    bench.now = 1100.0
    assert bench.read() == (1, 1100)


def test_the_time_is_that_of_the_round_that_found_it_outdated() -> None:
    bench = Bench()
    bench.intent.is_current = True
    bench.rounds.on_next(None)
    for part in (bench.intent, bench.apply, bench.kubernetes):
        bench.now += 10
        part.is_current = False
        bench.rounds.on_next(None)
        began = bench.now
        bench.now += 500
        bench.rounds.on_next(None)
        assert bench.read() == (0, began)
        part.is_current = True
        assert bench.read() == (1, bench.now)
