"""Session events become Events; an exception on the way fails the job, and later ones are reported."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any

from reactivex.subject import Subject

from cells.hive import Group, Health, Level
from cells.hive.jobs import Job, RestartPolicy, Supervisor
from cells.options import ReportOptions
from cells.report.cell import Report
from cells.speaker.events import SpeakerEvents
from reconcilers.tables import IntentTables
from resources.tables import Tables
from speaker.api import ESTABLISHED, StateChanged
from statedb import Database
from tests.support.wait import until


class FailingDialect:
    """Raises for the first session, and reports no object for those after it."""

    def __init__(self) -> None:
        self.calls = 0

    def reported_object(self, snapshot: object, node: str) -> None:
        del snapshot, node
        self.calls += 1
        if self.calls == 1:
            raise KeyError("a bug in a dialect")


def test_an_exception_for_a_session_fails_the_job_and_later_sessions_are_reported() -> None:
    database = Database()
    jobs: dict[str, Job] = {}
    events = SpeakerEvents(Health())
    dialect = FailingDialect()
    others: Any = SimpleNamespace(
        node=SimpleNamespace(name="n1"),
        intent=SimpleNamespace(ready=False, done=Subject()),
        jobs=SimpleNamespace(add=jobs.__setitem__),
        statuses=None,
        kubernetes=None,
        speaker=SimpleNamespace(peers=list),
        sessions=SimpleNamespace(table=SimpleNamespace(observable=Subject())),
    )
    report = Report(
        database,
        Tables(database),
        IntentTables(database),
        others.intent,
        others.node,
        others.kubernetes,
        others.statuses,
        Group([dialect]),  # type: ignore[list-item]
        events,
        others.speaker,
        others.sessions,
        ReportOptions(),
        SimpleNamespace(nodes=1),  # type: ignore[arg-type]
        Health(),
        others.jobs,
    )
    health = Health()
    supervisor = Supervisor(lambda _: None, random.Random(1))  # noqa: S311
    up = StateChanged(
        instance="i", peer="p", address="192.0.2.9", old="OpenConfirm", new=ESTABLISHED, reason=""
    )

    async def scenario() -> None:
        async with asyncio.TaskGroup() as group:
            supervisor.bind(group)
            task = supervisor.spawn(
                "report.occurrences", jobs["occurrences"], health, RestartPolicy(first=0.01)
            )
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            events.publish(up)
            await until(lambda: supervisor.restarts["report.occurrences"] == 1)
            await until(lambda: health.level() is Level.OK)
            events.publish(up)
            task.cancel()

    asyncio.run(scenario())
    assert dialect.calls == 2
    write = report._events.next_write(1e9, 1e9)
    assert write is not None
    assert write.content["reason"] == "SessionEstablished"
