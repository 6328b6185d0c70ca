"""The leader's check that deletes what agents wrote for API dialects that are off."""

from __future__ import annotations

import structlog

from cells.dialects.cell import DialectCell
from cells.hive import Health
from cells.hive.composition import Composition
from cells.report.cluster_size import MANAGER as AGENTS
from reconcilers.dialect import WrittenObjects
from reconcilers.operator.agent_objects import AgentObjectClient
from reconcilers.operator.leftovers import delete_leftovers

POLL_INTERVAL_SECONDS = 120.0
"""Between two passes: an agent that is not restarted yet writes its objects again."""
QUICK_PASSES = 5
"""Passes in a row that deleted something, until the next one waits for `LONG_INTERVAL_SECONDS`: agents
have the dialect on."""
LONG_INTERVAL_SECONDS = 3600.0

log = structlog.get_logger("waggle.operator")


class LeftoverObjects:
    """A `cells.operator.leader_check.LeaderCheck`."""

    name = "leftovers"

    def __init__(self, composition: Composition, health: Health) -> None:
        self._off = [c.entry for c in composition.disabled() if isinstance(c, DialectCell)]
        """The dialects that are off in this operator."""
        self._health = health.scope(self.name)
        self._passes = 0
        """In a row, that deleted something."""

    @property
    def needed(self) -> bool:
        """True if a dialect is off."""
        return bool(self._off)

    async def run(self, writer: AgentObjectClient) -> float:
        """Make a pass. Raises `KubernetesError`."""
        # A dialect that is off is imported by the leader alone.
        written = [own for entry in self._off for own in entry.load().each(WrittenObjects)]
        kinds = [kind for own in written for kind in own.kinds]
        deleted = await delete_leftovers(writer, kinds, AGENTS)
        for leftover in deleted:
            log.info(
                "object of a dialect that is off is deleted",
                event_name="operator.leftover",
                object=f"{leftover.kind}/{leftover.name}",
            )
        self._passes = self._passes + 1 if deleted else 0
        if self._passes < QUICK_PASSES:
            self._health.ok("objects of dialects that are off are deleted")
            return POLL_INTERVAL_SECONDS
        names = ", ".join(sorted({leftover.kind for leftover in deleted}))
        self._health.degraded(f"agents write {names} of a dialect that is off in the operator")
        return LONG_INTERVAL_SECONDS
