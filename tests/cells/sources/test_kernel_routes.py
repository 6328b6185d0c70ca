"""The table of redistributed routes: written if needed, without routes of BGP, kept after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from cells.hive import Group, Health
from cells.hive.jobs import Job, Jobs, RestartPolicy
from cells.sources import kernel_routes
from cells.sources.kernel_routes import KernelRouteWatch, OwnProtocol
from reconcilers.intent.host_needs import HostDemand
from resources.host import KernelRoute, KernelTable
from resources.tables import Tables
from statedb import Database
from tests.support.wait import until

TABLE = frozenset({KernelTable(198)})
Report = Callable[[frozenset[KernelRoute]], None]


class _Jobs:
    def __init__(self) -> None:
        self.job: Job | None = None

    def add(self, name: str, job: Job, *, policy: RestartPolicy) -> None:
        assert name == "redistributed"
        assert policy.restarts is None, "sessions go on where the kernel cannot be read"
        self.job = job


def test_routes_follow_the_tables_that_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database()
    tables, jobs = Tables(db), _Jobs()
    demand = HostDemand(tables, [], "n1")
    followed: list[tuple[frozenset[KernelTable], Report]] = []
    failing = False

    async def watch(wanted: frozenset[KernelTable], report: Report) -> None:
        if failing:
            raise OSError(1, "not permitted")
        followed.append((wanted, report))
        await asyncio.Event().wait()

    monkeypatch.setattr(kernel_routes, "watch", watch)
    KernelRouteWatch(db, tables, demand, Group((OwnProtocol(200),)), Health(), cast("Jobs", jobs))

    def known() -> set[str]:
        return {row.prefix for row in tables.kernel_routes.all(db.snapshot())}

    def waited_for() -> bool:
        return not tables.kernel_routes.initialized(db.snapshot())

    async def scenario() -> None:
        nonlocal failing
        assert jobs.job is not None
        task = asyncio.ensure_future(jobs.job())
        await asyncio.sleep(0)
        assert waited_for()
        demand.redistribute(db.snapshot(), TABLE)
        await until(lambda: bool(followed))
        wanted, report = followed.pop()
        assert wanted == TABLE
        report(
            frozenset(
                KernelRoute(f"192.0.2.{number}/32", 198, protocol)
                for number, protocol in ((1, 248), (2, 186), (3, 200))
            )
        )
        assert known() == {"192.0.2.1/32"}
        assert not waited_for()
        demand.redistribute(db.snapshot(), frozenset())
        await until(lambda: not known())
        failing = True
        demand.redistribute(db.snapshot(), TABLE)
        with pytest.raises(OSError, match="not permitted"):
            await task

    asyncio.run(scenario())
