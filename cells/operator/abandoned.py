"""The leader's job that deletes the objects of nodes which no longer exist."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import structlog

from cells.hive import Health
from cells.kubernetes import Kubernetes
from reconcilers.dialect import Dialect
from reconcilers.operator.abandoned import AbandonedObjects
from resources.kubernetes import KubernetesError
from resources.tables import Tables
from statedb import Database

MANAGER = "waggle-operator"
"""The field manager."""
POLL_INTERVAL_SECONDS = 600.0
"""Between two passes."""
RETRY_SECONDS = 60.0
"""After a pass that failed."""
UNREAD_SECONDS = 2.0
"""Until it is checked again whether the Nodes have been read."""

log = structlog.get_logger("waggle.operator")


class AbandonedObjectsJob:
    """Makes passes while this operator leads."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        dialects: Sequence[Dialect],
        kubernetes: Kubernetes,
        leads: asyncio.Event,
        health: Health,
    ) -> None:
        self._database = database
        self._tables = tables
        self._abandoned = AbandonedObjects(dialects)
        self._kubernetes = kubernetes
        self._leads = leads
        self._health = health

    @property
    def needed(self) -> bool:
        """True if an enabled dialect has objects of nodes."""
        return self._abandoned.needed

    async def run(self) -> None:
        """Make passes until cancelled."""
        rng = random.SystemRandom()
        while True:
            await self._leads.wait()
            pause = POLL_INTERVAL_SECONDS
            try:
                if not await self._run_once():
                    pause = UNREAD_SECONDS
            except KubernetesError as error:
                self._health.degraded(f"objects of nodes that are gone stay: {error}")
                pause = RETRY_SECONDS
            await asyncio.sleep(pause * rng.uniform(0.75, 1.25))

    async def _run_once(self) -> bool:
        """Make a pass; returns False where the Nodes are not known."""
        nodes = self._tables.nodes.all(self._database.snapshot())
        names = frozenset(row.metadata.name for row in nodes)
        if self._tables.nodes.name in self._kubernetes.unread.kinds or not names:
            self._health.ok("waits for the Nodes")
            return False
        async with self._kubernetes.writer(MANAGER) as writer:
            deleted = await self._abandoned.run(writer, names)
        for one in deleted:
            log.info(
                "object of a node that is gone is deleted",
                event_name="operator.abandoned",
                object=f"{one.kind}/{one.name}",
            )
        if self._abandoned.failure is not None:
            raise self._abandoned.failure
        self._health.ok("objects of nodes that are gone are deleted")
        return True
