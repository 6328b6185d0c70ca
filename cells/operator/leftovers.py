"""The leader's job that deletes what agents wrote for API dialects that are off."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from cells.hive import Health
from cells.kubernetes import Kubernetes
from cells.operator.leader_check import repeat_while_leading
from cells.report.cluster_size import MANAGER as AGENTS
from reconcilers.dialect_entry import DialectEntry
from reconcilers.operator.leftovers import LeftoverClient, delete_leftovers

POLL_INTERVAL_SECONDS = 120.0
"""Between two passes: an agent that is not restarted yet writes its objects again."""
QUICK_PASSES = 5
"""Passes in a row that deleted something, until the next one waits for `LONG_INTERVAL_SECONDS`: agents
have the dialect on."""
LONG_INTERVAL_SECONDS = 3600.0

log = structlog.get_logger("waggle.operator")


class LeftoverObjects:
    """Deletes while this operator leads."""

    def __init__(
        self,
        off: Sequence[DialectEntry],
        kubernetes: Kubernetes,
        leads: asyncio.Event,
        health: Health,
    ) -> None:
        """``off`` are the dialects that are off in this operator."""
        self._off = off
        self._kubernetes = kubernetes
        self._leads = leads
        self._health = health
        self._passes = 0
        """In a row, that deleted something."""
        self._due = 0.0
        """The time of the next pass, by the loop's clock."""

    @property
    def needed(self) -> bool:
        """True if a dialect is off."""
        return bool(self._off)

    async def run(self) -> None:
        """Make passes until cancelled."""
        await repeat_while_leading(
            self._leads, self._kubernetes, self.delete, POLL_INTERVAL_SECONDS
        )

    async def delete(self, writer: LeftoverClient) -> None:
        """Make a pass, if one is due. Raises `KubernetesError`."""
        now = asyncio.get_running_loop().time()
        if now < self._due:
            return
        # A dialect that is off is imported by the leader alone.
        kinds = [kind for entry in self._off for kind in entry.load().node_object_kinds]
        deleted = await delete_leftovers(writer, kinds, AGENTS)
        for one in deleted:
            log.info(
                "object of a dialect that is off is deleted",
                event_name="operator.leftover",
                object=f"{one.kind}/{one.name}",
            )
        self._passes = self._passes + 1 if deleted else 0
        if self._passes < QUICK_PASSES:
            self._health.ok("objects of dialects that are off are deleted")
            return
        self._due = now + LONG_INTERVAL_SECONDS
        names = ", ".join(sorted({one.kind for one in deleted}))
        self._health.degraded(f"agents write {names} of a dialect that is off in the operator")
