"""The job of the Secrets that objects refer to: a dialect that fails is named, and stops no other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from structlog.testing import capture_logs

from cells.hive import Health, Level
from cells.options import ResourcesOptions
from cells.sources.referenced_secrets import ReferencedSecrets, SecretReaders
from cells.sources.resources import SecretsNamespace
from reconcilers.compile_manifests import kinds_of
from reconcilers.dialect import Dialect, DialectSecrets
from resources.core.kinds import SECRET
from resources.kind import Kinds
from resources.meta import ObjectKey
from resources.tables import Tables
from statedb import Database
from tests.dialects.beacon.kinds import BEACON
from tests.dialects.objects import beacon
from tests.support.wait import until


def references(dialect: Failing, *_: object) -> Iterable[ObjectKey]:
    if not dialect.works:
        raise KeyError("a defect")
    yield "bgp", "mine"


class Failing(Dialect):
    name, title, kinds = "failing", "Failing", (SECRET, BEACON)
    extensions = (DialectSecrets(references),)
    works = False


class Good(Dialect):
    name, title, kinds = "good", "Good", (SECRET,)
    extensions = (DialectSecrets(lambda *_: [("bgp", "k")]),)


class Source:
    """The part of a source that the job uses."""

    kinds = Kinds(Failing.kinds)

    def __init__(self) -> None:
        self.followed: list[frozenset[ObjectKey]] = []

    def follow(self, kind: object, keys: frozenset[ObjectKey]) -> None:
        assert kind is SECRET
        self.followed.append(keys)


class Jobs:
    def add(self, name: str, job: Any) -> None:  # noqa: ANN401
        assert name == "secrets"
        self.job = job


def test_a_dialect_that_fails_is_named_in_health_and_log_until_it_works_again() -> None:
    db, health, source, jobs = Database(), Health(), Source(), Jobs()
    tables = Tables(db, kinds_of([Failing, Good]))
    failing = Failing(tables, Failing.options_type())
    readers = SecretReaders((failing, Good(tables, Good.options_type())))
    namespace = SecretsNamespace(ResourcesOptions())
    ReferencedSecrets(db, tables, readers, namespace, source, health, jobs)  # type: ignore[arg-type]

    def status() -> tuple[Level, str]:
        found = health.scope("secrets").status
        assert found is not None
        return (found.level, found.message)

    async def scenario() -> None:
        job = asyncio.create_task(jobs.job())
        with capture_logs() as lines:
            await until(lambda: len(source.followed) == 1)
            await until(lambda: status() == (Level.DEGRADED, "failing: KeyError: 'a defect'"))
        assert source.followed[-1] == {("bgp", "k")}
        assert [line["dialect"] for line in lines] == ["failing"]
        failing.works = True
        with db.write(tables.of(BEACON)) as txn:
            tables.of(BEACON).upsert(txn, BEACON.decode(beacon()))
        await until(lambda: len(source.followed) == 2)
        assert source.followed[-1] == {("bgp", "k"), ("bgp", "mine")}
        await until(lambda: status() == (Level.OK, "watches 2 Secrets by name"))
        job.cancel()

    asyncio.run(scenario())
