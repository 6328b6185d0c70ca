"""The calls of one change: a bound, which shows rounds that look at what has not changed."""

from __future__ import annotations

import pytest

from bench import bench_walk
from speaker.server import PREFIX_TABLE_FORM

RUNS = 8
OF_TABLES_IN_PYTHON = 4


@pytest.mark.parametrize(("walk", "calls"), [("frrk8s", 1220), ("metallb", 4290)])
def test_a_change_makes_no_more_calls(walk: str, calls: int) -> None:
    # Calls into the prefix table in C are not seen.
    calls += OF_TABLES_IN_PYTHON if PREFIX_TABLE_FORM != "C" else 0
    counts: list[int] = []
    # A job that polls may be among the calls of one run.
    while len(counts) < RUNS and (not counts or min(counts) > calls):
        counts.append(sum(bench_walk.measure(bench_walk.ROOT, walk).values()))
    assert min(counts) <= calls
