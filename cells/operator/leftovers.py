"""The leader's job that deletes what agents wrote for API dialects that are off."""

from __future__ import annotations

import asyncio

import structlog

from cells.dialects.cell import DialectCell
from cells.hive import Health
from cells.hive.composition import Composition
from cells.kubernetes import Kubernetes
from cells.operator.leader_check import repeat_while_leading
from cells.report.cluster_size import MANAGER as AGENTS
from reconcilers.operator.leftovers import delete_leftovers
from resources.kubernetes import Writer

POLL_INTERVAL_SECONDS = 120.0
"""Between two passes: an agent that is not restarted yet writes its objects again."""

log = structlog.get_logger("waggle.operator")


class LeftoverObjects:
    """Deletes while this operator leads."""

    def __init__(
        self,
        composition: Composition,
        kubernetes: Kubernetes,
        leads: asyncio.Event,
        health: Health,
    ) -> None:
        self._off = [c.entry for c in composition.disabled() if isinstance(c, DialectCell)]
        self._kubernetes = kubernetes
        self._leads = leads
        self._health = health

    @property
    def needed(self) -> bool:
        """True if a dialect is off."""
        return bool(self._off)

    async def run(self) -> None:
        """Make passes until cancelled."""
        await self._leads.wait()
        await repeat_while_leading(
            self._leads, self._kubernetes, self._delete, POLL_INTERVAL_SECONDS
        )

    async def _delete(self, writer: Writer) -> None:
        # A dialect that is off is imported by the leader alone.
        kinds = [kind for entry in self._off for kind in entry.load().node_object_kinds]
        for one in await delete_leftovers(writer, kinds, AGENTS):
            log.info(
                "object of a dialect that is off is deleted",
                event_name="operator.leftover",
                object=f"{one.kind}/{one.name}",
            )
        self._health.ok("objects of dialects that are off are deleted")
