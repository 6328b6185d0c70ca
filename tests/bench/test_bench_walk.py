"""The calls of one change: a bound, which tells of rounds that look at what has not changed.

At be3b16d one prefix more in an FRRConfiguration was 2,464 calls, one BGPPeer of MetalLB 5,336.
"""

from __future__ import annotations

import pytest

from bench import bench_walk

RUNS = 3


@pytest.mark.parametrize(("walk", "calls"), [("frrk8s", 1232), ("metallb", 5000)])
def test_a_change_makes_no_more_calls(walk: str, calls: int) -> None:
    # A job that polls may be among the calls of one run.
    fewest = min(sum(bench_walk.measure(bench_walk.ROOT, walk).values()) for _ in range(RUNS))
    assert fewest <= calls
