"""The leader's check of the programs that dialects rely on: health and log name untested versions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from cells.hive import Health
from cells.kubernetes import Kubernetes
from cells.operator.leader_check import repeat_while_leading
from reconcilers.dialect import Dialect
from reconcilers.operator.companions import Untested, untested_versions
from resources.kubernetes import Writer

POLL_INTERVAL_SECONDS = 600.0
"""Between two checks."""

log = structlog.get_logger("waggle.operator")


class CompanionCheck:
    """Checks while this operator leads."""

    def __init__(
        self,
        dialects: Sequence[Dialect],
        kubernetes: Kubernetes,
        leads: asyncio.Event,
        health: Health,
    ) -> None:
        self._dialects = [dialect for dialect in dialects if dialect.companions]
        self._kubernetes = kubernetes
        self._leads = leads
        self._health = health
        self._known: frozenset[Untested] = frozenset()

    @property
    def needed(self) -> bool:
        """True if an enabled dialect relies on another program."""
        return bool(self._dialects)

    async def run(self) -> None:
        """Check again and again, until cancelled."""
        await repeat_while_leading(
            self._leads, self._kubernetes, self._check, POLL_INTERVAL_SECONDS
        )

    async def _check(self, writer: Writer) -> None:
        self._report(await untested_versions(writer, self._dialects))

    def _report(self, found: Sequence[Untested]) -> None:
        for one in found:
            if one not in self._known:
                log.warning(
                    "untested version",
                    event_name="operator.untested_version",
                    dialect=one.dialect,
                    reason=one.message,
                )
        self._known = frozenset(found)
        if found:
            self._health.degraded(". ".join(one.message for one in found))
        else:
            self._health.ok("no untested version is known")
