"""The rows of the kernel cell follow its reconciler."""

from __future__ import annotations

import asyncio

from cells.kernel.state import INTERVAL_SECONDS, SLICE_ROWS, KernelState
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.writer.protocol_messages import Health
from reconcilers.kernel_state import KernelSettings
from reconcilers.sliced_work import finish
from speaker.api import NO_PATHS, BestPathChange
from speaker.nlri import IPV4_UNICAST
from tests.cells.kernel.jobs import TestJobs
from tests.reconcilers.kernel.build import path, paths
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import BOTH, PREFIX, Agent, wire
from tests.support import looptime


def test_rows_are_written_as_they_change() -> None:
    agent = Agent().start().table(BOTH, PREFIX)
    state = KernelState(agent.db, agent.intent, agent.kernel, FibOptions(), TestJobs().given)

    def rows() -> tuple[list[int], list[tuple[str, ...]]]:
        snapshot = agent.db.snapshot()
        return (
            [row.installed for row in sorted(agent.intent.kernel_tables.all(snapshot))],
            [row.next_hops for row in agent.intent.kernel_next_hops.all(snapshot)],
        )

    finish(state.write())
    assert rows() == ([1, 0], [("10.88.0.1%eth0", "10.88.0.2%eth0")])
    revision = agent.intent.kernel_tables.revision(agent.db.snapshot())
    finish(state.write())
    assert agent.intent.kernel_tables.revision(agent.db.snapshot()) == revision
    agent.change(NO_PATHS, PREFIX, before=BOTH)
    finish(state.write())
    assert rows() == ([0, 0], [])


def test_very_many_sets_of_next_hops_are_written_in_slices_as_they_change() -> None:
    agent, sets = Agent().start(), 3 * SLICE_ROWS
    state = KernelState(agent.db, agent.intent, agent.kernel, FibOptions(), TestJobs().given)
    several = [(f"10.88.0.{1 + n % 50}", f"10.88.0.{51 + n // 50}") for n in range(sets)]
    for n, gateways in enumerate(several):
        best = paths(*map(path, gateways))
        change = BestPathChange(
            IPV4_UNICAST, NO_PATHS, best, (wire(f"20.{n >> 8}.{n & 255}.0/24"),)
        )
        agent.kernel.best_paths("main", [change])
    agent.settle()

    def written() -> int:
        return agent.intent.kernel_next_hops.count(agent.db.snapshot())

    most, before = 0, 0
    for _ in state.write():
        most, before = max(most, written() - before), written()
    assert most == SLICE_ROWS
    assert written() == sets
    # A route that goes while they are read is in the next reading.
    work = state.write()
    next(work)
    agent.change(NO_PATHS, "20.0.0.0/24", before=paths(*map(path, several[0])))
    finish(work)
    finish(state.write())
    assert written() == sets - 1


def test_the_settings_are_a_row_with_what_keeps_all_routes_out() -> None:
    agent = Agent().start()
    options = FibOptions(multipath=8)
    state = KernelState(agent.db, agent.intent, agent.kernel, options, TestJobs().given)
    finish(state.write())
    (row,) = agent.intent.kernel_settings.all(agent.db.snapshot())
    assert row == KernelSettings(protocol=186, multipath=8)
    agent.writer.report(Health("another writer has the protocol number 186"))
    finish(state.write())
    (row,) = agent.intent.kernel_settings.all(agent.db.snapshot())
    assert row.problems == ("another writer has the protocol number 186",)


def test_the_job_writes_at_once_and_then_once_in_an_interval() -> None:
    agent, jobs = Agent().start(), TestJobs()
    KernelState(agent.db, agent.intent, agent.kernel, FibOptions(), jobs.given)

    def installed() -> list[int]:
        rows = agent.intent.kernel_tables.all(agent.db.snapshot())
        return [row.installed for row in sorted(rows)]

    async def scenario() -> None:
        async with jobs.running():
            await asyncio.sleep(0.1)
            assert installed() == [0, 0]
            agent.table(BOTH, PREFIX)
            await asyncio.sleep(INTERVAL_SECONDS - 0.2)
            assert installed() == [0, 0]
            await asyncio.sleep(0.2)
            assert installed() == [1, 0]
            agent.change(NO_PATHS, PREFIX, before=BOTH)
            await asyncio.sleep(INTERVAL_SECONDS)
            assert installed() == [0, 0]

    looptime.run(scenario())
