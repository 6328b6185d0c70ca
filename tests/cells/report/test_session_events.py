"""Events of the speaker become Kubernetes Events; an exception on the way fails the job alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from reactivex.subject import Subject

from cells.hive import Group, Health, Level
from cells.hive.jobs import Job, RestartPolicy, Supervisor
from cells.options import ReportOptions
from cells.report import cell
from cells.report.cell import Report
from cells.speaker.events import SpeakerEvents
from reconcilers.dialect import ReportedStatuses
from reconcilers.intent_tables import IntentTables
from reconcilers.model import ObjectRef, Problem
from reconcilers.report.events import EventWrite
from reconcilers.report.occurrences import Occurrences
from resources.core.kinds import SERVICE
from resources.tables import Tables
from speaker.api import ESTABLISHED, InstanceStatus, ListenChanged, StateChanged
from statedb import Database, Table
from tests.reconcilers.apply.intent_rows import PEER
from tests.reconcilers.build import service
from tests.reconcilers.report.test_events import next_write
from tests.reconcilers.report.test_occurrences import instance
from tests.support.wait import until


class FailingDialect:
    """Raises for the first session, and reports no object for those after it."""

    compiled_tables = ()

    def __init__(self) -> None:
        self.calls = 0

    def each(self, extension: object) -> tuple[ReportedStatuses, ...]:
        assert extension is ReportedStatuses
        return (ReportedStatuses((), lambda *_: (), FailingDialect.of_node),)

    def of_node(self, *_: object) -> None:
        self.calls += 1
        if self.calls == 1:
            raise KeyError("a bug in a dialect")


class Reporting:
    """The report of an agent, and its job that finds occurrences."""

    def __init__(self, dialects: Sequence[object] = (), *, ready: bool = False) -> None:
        database = self.database = Database()
        self.tables, self.intent_tables = Tables(database), IntentTables(database)
        self.done: Subject[None] = Subject()
        self.jobs: dict[str, Job] = {}
        self.events = SpeakerEvents(Health())
        self.instances: list[InstanceStatus] = []
        self.health = Health()
        others: Any = SimpleNamespace(
            node=SimpleNamespace(name="n1"),
            intent=SimpleNamespace(ready=ready, done=self.done),
            jobs=SimpleNamespace(add=self.jobs.__setitem__),
            statuses=None,
            runners=None,
            kubernetes=None,
            speaker=SimpleNamespace(peers=list, instances=lambda: self.instances),
            sessions=SimpleNamespace(table=SimpleNamespace(observable=Subject())),
        )
        self.report = Report(
            database,
            self.tables,
            self.intent_tables,
            others.intent,
            others.node,
            others.kubernetes,
            others.statuses,
            Group(dialects),  # type: ignore[arg-type]
            self.events,
            others.speaker,
            others.sessions,
            ReportOptions(),
            SimpleNamespace(nodes=1),  # type: ignore[arg-type]
            others.runners,
            Health(),
            others.jobs,
        )
        self.supervisor = Supervisor(lambda _: None, random.Random(1))  # noqa: S311

    @property
    def written(self) -> EventWrite | None:
        """The first Event that is due."""
        return next_write(self.report._events.events, 1e9, 1e9)

    def run(self, scenario: Callable[[], Awaitable[None]]) -> None:
        """Run a scenario beside the job."""

        async def both() -> None:
            async with asyncio.TaskGroup() as group:
                self.supervisor.bind(group)
                policy = RestartPolicy(first=0.01)
                job = self.jobs["occurrences"]
                task = self.supervisor.spawn("report.occurrences", job, self.health, policy)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                await scenario()
                task.cancel()

        asyncio.run(both())


def test_an_exception_for_a_session_fails_the_job_and_later_sessions_are_reported() -> None:
    dialect = FailingDialect()
    it = Reporting([dialect])
    up = StateChanged(
        instance="i", peer="p", address="192.0.2.9", old="OpenConfirm", new=ESTABLISHED, reason=""
    )

    async def scenario() -> None:
        it.events.publish(up)
        await until(lambda: it.supervisor.restarts["report.occurrences"] == 1)
        await until(lambda: it.health.level() is Level.OK)
        it.events.publish(up)

    it.run(scenario)
    assert dialect.calls == 2
    write = it.written
    assert write is not None
    assert write.content["reason"] == "SessionEstablished"


def test_a_listener_that_fails_is_an_event_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell, "SETTLE_SECONDS", 0)
    it = Reporting(ready=True)

    async def scenario() -> None:
        await asyncio.sleep(0)
        assert it.written is None
        it.instances = [instance("i", "listen on :: port 179: Permission denied")]
        it.events.publish(ListenChanged(instance="i", address="::", port=179, error="denied"))
        await until(lambda: it.written is not None)

    it.run(scenario)
    write = it.written
    assert write is not None
    assert (write.occurrence.reason, write.content["regarding"]["kind"]) == ("ListenFailed", "Node")


def test_a_round_of_intent_is_compared_if_it_concerns_an_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cell, "SETTLE_SECONDS", 0)
    comparisons = 0
    compare = Occurrences.compare

    def counted(occurrences: Occurrences) -> None:
        nonlocal comparisons
        comparisons += 1
        compare(occurrences)

    monkeypatch.setattr(Occurrences, "compare", counted)
    it = Reporting(ready=True)

    def put(table: Table[Any], row: object) -> None:
        with it.database.write(table) as txn:
            table.upsert(txn, row)

    async def made() -> int:
        for _ in range(20):
            await asyncio.sleep(0)
        return comparisons

    async def after_round() -> int:
        it.done.on_next(None)
        return await made()

    async def scenario() -> None:
        assert await made() == 1
        assert await after_round() == 1
        put(it.tables.services, SERVICE.decode(service("web", "198.51.100.1")))
        assert await after_round() == 1
        put(it.intent_tables.peers, PEER)
        assert await after_round() == 2
        assert await after_round() == 2
        problem = Problem((ObjectRef("Service", "", "web"),), "", "invalid")
        put(it.intent_tables.problems, problem)
        assert await after_round() == 3
        put(it.tables.services, SERVICE.decode(service("web", "198.51.100.2")))
        assert await after_round() == 4

    it.run(scenario)
