"""The log level that an object sets: a dialect that cannot find it leaves the level as it is."""

from __future__ import annotations

import asyncio
from typing import Any

from cells.dialects.wiring import LogLevel
from cells.hive import Health, Level
from reconcilers.compile_manifests import kinds_of
from reconcilers.dialect import Dialect, LogLevelObject
from resources.tables import Tables
from statedb import Database, Snapshot
from tests.dialects.beacon.kinds import BEACON
from tests.dialects.objects import beacon
from tests.support.wait import until


def level(dialect: Dialect, snapshot: Snapshot) -> Any:  # noqa: ANN401 - whatever the object has
    for row in dialect.tables.of(BEACON).all(snapshot):
        if row.spec.instance == "wrong":
            raise ValueError("a defect")
        return row.spec.instance
    return None


class Talking(Dialect):
    """Its Beacon sets the level: that of the instance's name."""

    name, title, kinds = "talking", "Talking", (BEACON,)
    extensions = (LogLevelObject(BEACON, level),)


class Logs:
    def __init__(self) -> None:
        self.levels: list[str | None] = []

    def override(self, name: str, level: str | None) -> None:
        assert name == "talking"
        self.levels.append(level)


class Jobs:
    def add(self, name: str, job: Any) -> None:  # noqa: ANN401
        assert name == "log-level"
        self.job = job


def test_a_dialect_that_fails_leaves_the_level_and_is_named_in_health() -> None:
    db, health, logs, jobs = Database(), Health(), Logs(), Jobs()
    tables = Tables(db, kinds_of([Talking]))
    dialect = Talking(tables, Talking.options_type())
    LogLevel(dialect, db, logs, health, jobs)  # type: ignore[arg-type]

    def put(instance: str | None) -> None:
        table = tables.of(BEACON)
        with db.write(table) as txn:
            if instance is None:
                table.delete_all(txn)
            else:
                table.upsert(txn, BEACON.decode(beacon(instance=instance)))

    def status() -> tuple[Level, str]:
        found = health.scope("log-level").status
        return (Level.OK, "") if found is None else (found.level, found.message)

    async def scenario() -> None:
        job = asyncio.create_task(jobs.job())
        put("debug")
        await until(lambda: status() == (Level.OK, "debug"))
        assert logs.levels == ["debug"]
        put("wrong")
        await until(lambda: status()[0] is Level.DEGRADED)
        assert status()[1].endswith("ValueError: a defect")
        assert logs.levels == ["debug"]
        put(None)
        await until(lambda: status() == (Level.OK, "as configured"))
        assert logs.levels == ["debug", None]
        job.cancel()

    asyncio.run(scenario())
