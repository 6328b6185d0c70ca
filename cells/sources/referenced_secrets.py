"""The job that names the Secrets which a source reads: Secrets that objects refer to, and no others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import structlog

from cells.hive import Health
from cells.hive.jobs import Jobs
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.sources.resources import SecretsNamespace
from reconcilers.dialect import Dialect
from reconcilers.intent.secret_references import SecretReferences
from resources.core.kinds import SECRET
from resources.enumeration import counted
from resources.kubernetes import KubernetesSource
from resources.tables import Tables
from statedb import Database

log = structlog.get_logger("waggle.kubernetes")


class SecretReaders:
    """The dialects whose Secrets this program reads."""

    def __init__(self, dialects: Iterable[Dialect]) -> None:
        self.dialects = tuple(dialects)


class ReferencedSecrets:
    """The Secrets to which the objects refer that a program reads."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        readers: SecretReaders,
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
        self._failures: list[str] = []
        """Of the present round."""
        self._references = SecretReferences(
            tables,
            readers.dialects,
            source.kinds,
            secrets_namespace.name,
            self._fail,
            clock=lambda: asyncio.get_running_loop().time(),
        )
        jobs.add("secrets", self._follow)

    def _fail(self, dialect: str, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}"
        self._failures.append(f"{dialect}: {reason}")
        log.error(
            "the Secrets of a dialect are not known; the last ones are read",
            event_name="secrets.unknown",
            dialect=dialect,
            reason=reason,
        )

    async def _follow(self) -> None:
        signal = Signal(*(table.observable for table in self._references.followed))
        await run_rounds(signal, self._find)

    async def _find(self, _: float | None) -> float | None:
        self._failures.clear()
        references = self._references.find(self._database.snapshot())
        if references is None:
            return self._references.retry
        self._source.follow(SECRET, references)
        if self._failures:
            self._health.degraded("; ".join(self._failures))
        else:
            self._health.ok(f"watches {counted(len(references), 'Secret')} by name")
        return self._references.retry
