"""The leader's check for objects of nodes which no longer exist: they are deleted."""

from __future__ import annotations

import structlog

from cells.hive import Group, Health
from cells.sources.api_server import UNREAD_SECONDS, Kubernetes
from reconcilers.dialect import Dialect
from reconcilers.operator.abandoned import AbandonedObjects
from resources.kubernetes import KubernetesError, Writer
from resources.tables import Tables
from statedb import Database

POLL_INTERVAL_SECONDS = 600.0
"""Between two passes."""

log = structlog.get_logger("waggle.operator")


class AbandonedObjectsCheck:
    """A `cells.operator.leader_check.LeaderCheck`."""

    name = "abandoned-objects"

    def __init__(
        self,
        database: Database,
        tables: Tables,
        dialects: Group[Dialect],
        kubernetes: Kubernetes,
        health: Health,
    ) -> None:
        self._database = database
        self._tables = tables
        self._abandoned = AbandonedObjects(dialects)
        self._kubernetes = kubernetes
        self._health = health.scope(self.name)

    @property
    def needed(self) -> bool:
        """True if an enabled dialect has objects of nodes."""
        return self._abandoned.needed

    async def run(self, writer: Writer) -> float:
        """Make a pass, if the Nodes are known. Raises `KubernetesError`."""
        nodes = self._tables.nodes.all(self._database.snapshot())
        names = frozenset(row.metadata.name for row in nodes)
        if self._tables.nodes.name in self._kubernetes.unread.kinds or not names:
            self._health.ok("waits for the Nodes")
            return UNREAD_SECONDS
        try:
            await self._delete(writer, names)
        except KubernetesError as error:
            self._health.degraded(f"objects of nodes that are gone stay: {error}")
            raise
        self._health.ok("objects of nodes that are gone are deleted")
        return POLL_INTERVAL_SECONDS

    async def _delete(self, writer: Writer, nodes: frozenset[str]) -> None:
        for deleted in await self._abandoned.run(writer, nodes):
            log.info(
                "object of a node that is gone is deleted",
                event_name="operator.abandoned",
                object=f"{deleted.kind}/{deleted.name}",
            )
        if self._abandoned.failure is not None:
            raise self._abandoned.failure
