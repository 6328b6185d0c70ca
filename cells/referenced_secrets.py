"""The job that names the Secrets which a source reads: those that objects refer to, and no others."""

from __future__ import annotations

from cells.hive import Group, Health
from cells.hive.jobs import Jobs
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.resources import SecretsNamespace
from reconcilers.dialect import Dialect
from reconcilers.intent.secret_references import SecretReferences
from resources.core.kinds import SECRET
from resources.kubernetes import KubernetesSource
from resources.tables import Tables
from statedb import Database


class ReferencedSecrets:
    """The Secrets to which the objects refer that a program reads."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        dialects: Group[Dialect],
        secrets_namespace: SecretsNamespace,
        source: KubernetesSource,
        health: Health,
        jobs: Jobs,
    ) -> None:
        """Add the job. Nothing is done where no kind has Secrets."""
        if SECRET not in source.kinds:
            return
        self._database = database
        self._source = source
        self._health = health.scope("secrets")
        self._references = SecretReferences(
            tables, dialects, source.kinds, secrets_namespace.name, self._fail
        )
        jobs.add("secrets", self._follow)

    def _fail(self, dialect: str, error: Exception) -> None:
        self._health.degraded(f"{dialect}: {type(error).__name__}: {error}")

    async def _follow(self) -> None:
        signal = Signal(*(table.observable for table in self._references.followed))
        await run_rounds(signal, self._find)

    async def _find(self, _: float | None) -> None:
        found = self._references.find(self._database.snapshot())
        if found is not None:
            self._health.ok(f"{len(found)} Secrets are referred to")
            self._source.follow(SECRET, found)
