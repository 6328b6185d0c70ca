"""The job that names the Secrets which a source reads: those that objects refer to, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cells.hive import Health
from cells.hive.jobs import Jobs
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.resources import SecretsNamespace
from reconcilers.dialect import Dialect
from reconcilers.intent.secret_references import SecretReferences
from resources.core.kinds import SECRET
from resources.kind import Kind
from resources.kubernetes import KubernetesSource
from resources.tables import Tables
from statedb import Database


def follow_references(
    database: Database,
    tables: Tables,
    dialects: Iterable[Dialect],
    read_by: Callable[[Dialect], Iterable[Kind[Any]]],
    secrets_namespace: SecretsNamespace,
    source: KubernetesSource,
    health: Health,
    jobs: Jobs,
) -> None:
    """Add the job. Nothing is done where no kind has Secrets."""
    if SECRET not in source.kinds:
        return
    scope = health.scope("secrets")

    def fail(dialect: str, error: Exception) -> None:
        scope.degraded(f"{dialect}: {type(error).__name__}: {error}")

    references = SecretReferences(tables, dialects, read_by, secrets_namespace.name, fail)

    async def run(_: float | None) -> None:
        found = references.find(database.snapshot())
        if found is not None:
            scope.ok(f"{len(found)} Secrets are referred to")
            source.follow(SECRET, found)

    async def follow() -> None:
        await run_rounds(Signal(*(table.observable for table in references.followed)), run)

    jobs.add("secrets", follow)
