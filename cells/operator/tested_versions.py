"""The leader's check of the programs that dialects rely on: health and log name untested versions."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from cells.hive import Group, Health
from reconcilers.dialect import Companion, Dialect
from reconcilers.operator.tested_versions import Untested, untested_versions
from resources.kubernetes import Writer

POLL_INTERVAL_SECONDS = 600.0
"""Between two checks."""

log = structlog.get_logger("waggle.operator")


class CompanionCheck:
    """A `cells.operator.leader_check.LeaderCheck`."""

    name = "companions"

    def __init__(self, dialects: Group[Dialect], health: Health) -> None:
        self._dialects = [dialect for dialect in dialects if dialect.each(Companion)]
        self._health = health.scope(self.name)
        self._known: frozenset[Untested] = frozenset()

    @property
    def needed(self) -> bool:
        """True if an enabled dialect relies on another program."""
        return bool(self._dialects)

    async def run(self, writer: Writer) -> float:
        """Check once. Raises `KubernetesError`."""
        self._report(await untested_versions(writer, self._dialects))
        return POLL_INTERVAL_SECONDS

    def _report(self, untested: Sequence[Untested]) -> None:
        for program in untested:
            if program not in self._known:
                log.warning(
                    "untested version",
                    event_name="operator.untested_version",
                    dialect=program.dialect,
                    reason=program.message,
                )
        self._known = frozenset(untested)
        if untested:
            self._health.degraded(". ".join(program.message for program in untested))
        else:
            self._health.ok("no untested version is known")
