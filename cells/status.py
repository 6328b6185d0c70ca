"""The status cell: how this node's NodeConfig is carried out, as a table that others show or write.

With manifests there is nowhere to write it; it is told all the same. It decides nothing.
"""

from __future__ import annotations

import time

from cells.hive import Cell, Health, Jobs, Signal
from cells.hive.rounds import run_rounds
from cells.intent import IntentLoop
from cells.node import ThisNode
from cells.speaker.sessions import Sessions
from reconcilers.report.round import NodeStatus, ReportRound
from reconcilers.tables import IntentTables
from resources.tables import Tables
from speaker.api import SpeakerPort
from statedb import Database, Table

EVERY = 5.0
"""Seconds between two looks at the numbers of routes, of which nobody tells."""
LEAST = 0.2
"""Seconds between two looks, whatever happens."""


def make_round(
    database: Database,
    tables: Tables,
    intent_tables: IntentTables,
    node: ThisNode,
    speaker: SpeakerPort,
) -> ReportRound:
    """Return the round that works out the status."""
    return ReportRound(database, tables, intent_tables, node.name, speaker.peers)


def node_statuses(report_round: ReportRound) -> Table[NodeStatus]:
    """Return the table with the status of this node's NodeConfig."""
    return report_round.table


class StatusLoop:
    """The job that keeps the status's row."""

    def __init__(
        self,
        report_round: ReportRound,
        sessions: Sessions,
        intent: IntentLoop,
        health: Health,
        jobs: Jobs,
    ) -> None:
        self._round = report_round
        self._intent = intent
        self._health = health
        followed = (*report_round.followed, sessions.table)
        self._signal = Signal(*(table.observable for table in followed))
        jobs.add("rounds", self._run)

    async def _run(self) -> None:
        await run_rounds(self._signal, self._report, interval=LEAST, poll=EVERY)

    async def _report(self, _: float | None) -> None:
        if self._intent.ready:
            self._round.run(time.time())
            self._health.ok("follows the sessions")


CELL = Cell(
    name="status",
    description="How this node's NodeConfig is carried out.",
    private=(make_round,),
    provides=(node_statuses,),
    invokes=(StatusLoop,),
)
