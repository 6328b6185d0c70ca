"""The simulated writes of a cluster: a window in which each agent writes its numbers."""

from __future__ import annotations

import asyncio

from bench.bench_status_writes import simulate
from reconcilers.target.write_spread import count_interval

AGENTS = 8


def test_each_agent_writes_its_numbers_within_the_window() -> None:
    seconds = int(count_interval(AGENTS))
    writes = sum(asyncio.run(simulate(AGENTS, seconds)))
    # After half of the interval to all of it, each.
    assert AGENTS <= writes <= 2 * AGENTS
