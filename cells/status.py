"""The status cell: how this node's NodeConfig is carried out, as a table that others show or write.

With manifests there is nowhere to write it; it is told all the same. It decides nothing.
"""

from __future__ import annotations

import asyncio
import time

from dependency_injector import providers
from dependency_injector.containers import DeclarativeContainer

from cells.hive import Cell, Health, Jobs, Signal
from cells.intent import IntentLoop
from cells.node import ThisNode
from cells.speaker.sessions import Sessions
from reconcilers.report.round import ReportRound
from reconcilers.tables import IntentTables
from resources.tables import Tables
from speaker.server import Speaker
from statedb import Database

EVERY = 5.0
"""Seconds between two looks at the numbers of routes, of which nobody tells."""
LEAST = 0.2
"""Seconds between two looks, whatever happens."""


class NodeStatuses:
    """The job that keeps the status's row."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        intent_tables: IntentTables,
        node: ThisNode,
        speaker: Speaker,
        sessions: Sessions,
        intent: IntentLoop,
        health: Health,
        jobs: Jobs,
    ) -> None:
        self.round = ReportRound(database, tables, intent_tables, node.name, speaker.peers)
        self._intent = intent
        self._health = health
        followed = (*self.round.followed, sessions.table)
        self._signal = Signal(*(table.observable for table in followed))
        jobs.add("rounds", self._run)

    async def _run(self) -> None:
        with self._signal as signal:
            while True:
                await signal.wait(at_most=EVERY)
                if self._intent.ready:
                    self.round.run(time.time())
                    self._health.ok("follows the sessions")
                await asyncio.sleep(LEAST)


class StatusContainer(DeclarativeContainer):
    """The graph of the status cell."""

    health = providers.Dependency(instance_of=Health)
    jobs = providers.Dependency(instance_of=Jobs)
    database = providers.Dependency(instance_of=Database)
    tables = providers.Dependency(instance_of=Tables)
    intent_tables = providers.Dependency(instance_of=IntentTables)
    this_node = providers.Dependency(instance_of=ThisNode)
    speaker = providers.Dependency(instance_of=Speaker)
    sessions = providers.Dependency(instance_of=Sessions)
    intent = providers.Dependency(instance_of=IntentLoop)
    node_statuses = providers.Singleton(
        NodeStatuses,
        database,
        tables,
        intent_tables,
        this_node,
        speaker,
        sessions,
        intent,
        health,
        jobs,
    )
    invokes = providers.List(node_statuses)


CELL = Cell(
    name="status",
    description="How this node's NodeConfig is carried out.",
    container=StatusContainer,
)
