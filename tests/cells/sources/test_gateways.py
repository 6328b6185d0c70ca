"""The gateways of default routes: read now and then; a failure keeps the known gateways."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from cells.hive import Health
from cells.hive.jobs import Job, Jobs
from cells.sources import gateways
from resources.tables import Tables
from statedb import Database
from tests.support.wait import until


class _Jobs:
    def __init__(self) -> None:
        self.job: Job | None = None

    def add(self, name: str, job: Job) -> None:
        assert name == "gateways"
        self.job = job


def test_gateways_follow_the_kernel_and_survive_its_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gateways, "POLL_INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr(gateways, "RESTS", 0)
    db = Database()
    tables, jobs = Tables(db), _Jobs()
    answers: list[frozenset[str] | OSError] = [OSError(1, "not permitted")]

    reads: list[object] = []

    def read() -> frozenset[str]:
        answer = answers[-1]
        reads.append(answer)
        if isinstance(answer, OSError):
            raise answer
        return answer

    gateways.GatewayWatch(db, tables, Health(), cast("Jobs", jobs), read)
    assert tables.gateways.pending_initializers(db.snapshot())

    def known() -> set[str]:
        return {row.address for row in tables.gateways.all(db.snapshot())}

    async def scenario() -> None:
        assert jobs.job is not None
        task = asyncio.ensure_future(jobs.job())
        # What cannot be read is not waited for.
        await until(lambda: not tables.gateways.pending_initializers(db.snapshot()))
        answers.append(frozenset({"192.0.2.1", "2001:db8::1"}))
        await until(lambda: known() == {"192.0.2.1", "2001:db8::1"})
        answers.append(frozenset({"192.0.2.2"}))
        await until(lambda: known() == {"192.0.2.2"})
        answers.append(OSError(1, "not permitted"))
        await until(lambda: reads[-3:] == 3 * answers[-1:])
        assert known() == {"192.0.2.2"}
        task.cancel()

    asyncio.run(scenario())
