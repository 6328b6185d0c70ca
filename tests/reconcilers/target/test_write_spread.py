"""Writes that can wait are spread over the cluster; the more nodes, the longer they wait."""

from __future__ import annotations

import random

from reconcilers.target.write_spread import WriteSpread

NODES = 5000


def test_all_agents_together_write_numbers_seldom_while_services_change_all_the_time() -> None:
    """5,000 nodes: fewer than 10,000 writes in an hour; 40 nodes: fewer than 500."""
    for nodes, most in ((5000, 10_000), (40, 500)):
        spread = WriteSpread(random.Random(1).random, lambda nodes=nodes: nodes)  # type: ignore[misc]  # noqa: S311
        writes = 0
        for _ in range(nodes):
            now = spread.counts_due(0.0, 0.0)
            while now < 3600:
                writes += 1
                now = spread.counts_due(now, now)
        assert nodes / 2 < writes < most


def test_5000_writers_stay_below_50_writes_a_second_in_steady_churn_and_after_one_change() -> None:
    spread = [WriteSpread(random.Random(seed).random, lambda: NODES) for seed in range(NODES)]  # noqa: S311
    per_second = [0] * 1200
    for one in spread:
        # A difference is noticed as soon as the last one is written: a Service changes every second.
        now = one.due(0.0, -60.0)
        assert now < NODES / 15
        while now < len(per_second):
            per_second[int(now)] += 1
            now = one.due(now, now)
    assert max(per_second) < 50
    assert sum(per_second) > 10 * len(per_second)  # and each of them goes on writing
