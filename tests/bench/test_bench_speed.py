"""The comparison of routers on a busy machine: runs that waited for a CPU are not used."""

from __future__ import annotations

import os

from bench.speed.arena import Usage, usage
from bench.speed.plan import QUICK, cases
from bench.speed.report import Outcome


def test_what_a_process_waited_for_a_cpu_is_a_figure_of_its_run() -> None:
    before, after = Usage(cpu=1.0, waited=0.5), Usage(cpu=1.3, waited=0.6)
    figures = {name: round(value, 6) for name, value in after.figures_since(before, 10).items()}
    assert figures == {"cpu": 30.0, "waited": 100.0, "waited_share": 0.25}
    assert before.figures_since(before) == {"cpu": 0.0, "waited": 0.0, "waited_share": 0.0}
    assert usage([os.getpid()]).cpu > 0


def test_a_run_that_waited_too_long_is_dropped() -> None:
    case = next(iter(cases(QUICK, None, 0)))  # type: ignore[arg-type]
    outcome = Outcome(case, {}, {})
    for time, share in ((10.0, 0.0), (12.0, 0.1), (40.0, 0.11)):
        outcome.add("waggle", {"time": time, "waited_share": share}, 0.1)
    outcome.add("waggle", {"rss": 30.0}, 0.1)
    assert outcome.values("waggle", "time") == [10.0, 12.0]
    assert [run["time"] for run in outcome.dropped["waggle"]] == [40.0]


def test_what_every_run_waits_is_the_scenarios_own_up_to_the_same_share() -> None:
    case = next(iter(cases(QUICK, None, 0)))  # type: ignore[arg-type]
    outcome = Outcome(case, {}, {})
    for share in (0.21, 0.17, 0.11, 0.12):
        outcome.add("waggle", {"waited_share": share}, 0.1)
    assert sorted(outcome.values("waggle", "waited_share")) == [0.11, 0.12, 0.17]
    assert [run["waited_share"] for run in outcome.dropped["waggle"]] == [0.21]
    for share in (0.5, 0.45):
        outcome.add("bird", {"waited_share": share}, 0.1)
    assert not outcome.values("bird", "waited_share")
    assert len(outcome.dropped["bird"]) == 2
