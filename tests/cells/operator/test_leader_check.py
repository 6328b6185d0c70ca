"""Checks of the leader: passes while it leads, pauses of each check, a retry after errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from cells.hive import Group
from cells.operator import cell
from cells.operator.leader_check import RETRY_SECONDS, LeaderCheck, LeaderChecks
from resources.kubernetes import KubernetesError
from tests.support import looptime


class Check:
    """Notes the times of its passes."""

    def __init__(self, name: str, *, pause: float = 100.0, needed: bool = True) -> None:
        self.name = name
        self.needed = needed
        self.failing = False
        self.passes: list[float] = []
        self._pause = pause

    async def run(self, writer: object) -> float:
        del writer
        self.passes.append(asyncio.get_running_loop().time())
        if self.failing:
            raise KubernetesError("no answer")
        return self._pause


def started(*checks: Check, leads: asyncio.Event) -> list[asyncio.Task[None]]:
    @asynccontextmanager
    async def writer(_: str) -> AsyncIterator[object]:
        yield object()

    jobs: dict[str, Callable[[], Awaitable[None]]] = {}
    add: Any = SimpleNamespace(add=lambda name, run: jobs.update({name: run}))
    kubernetes: Any = SimpleNamespace(writer=writer)
    leadership: Any = SimpleNamespace(gained=leads)
    LeaderChecks(Group(checks), kubernetes, leadership, add)
    assert list(jobs) == [check.name for check in checks if check.needed]
    return [asyncio.ensure_future(run()) for run in jobs.values()]


def pauses(times: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(times)]


def test_passes_begin_with_the_leadership_and_keep_their_own_pauses() -> None:
    async def scenario() -> None:
        often, seldom, unused = Check("a"), Check("b", pause=1000.0), Check("c", needed=False)
        leads = asyncio.Event()
        tasks = started(often, seldom, unused, leads=leads)
        await asyncio.sleep(5000)
        assert often.passes == seldom.passes == []
        leads.set()
        await asyncio.sleep(5000)
        assert 40 <= len(often.passes) <= 67
        assert all(75 <= pause <= 125 for pause in pauses(often.passes))
        assert 4 <= len(seldom.passes) <= 7
        for task in tasks:
            task.cancel()

    looptime.run(scenario())


def test_a_check_that_fails_is_repeated_soon_and_delays_no_other() -> None:
    async def scenario() -> None:
        failing, other = Check("a", pause=1000.0), Check("b", pause=1000.0)
        failing.failing = True
        leads = asyncio.Event()
        leads.set()
        tasks = started(failing, other, leads=leads)
        await asyncio.sleep(1200)
        assert all(pause <= 1.25 * RETRY_SECONDS for pause in pauses(failing.passes))
        assert len(other.passes) <= 2
        for task in tasks:
            task.cancel()

    looptime.run(scenario())


def test_the_leader_makes_the_checks_of_all_parts() -> None:
    contributed: list[Any] = [item for item in cell.WIRING.contributes if hasattr(item, "make")]
    assert [item.make.name for item in contributed if item.type is LeaderCheck] == [
        "rivals",
        "companions",
        "abandoned-objects",
        "leftovers",
        "service-events",
    ]
