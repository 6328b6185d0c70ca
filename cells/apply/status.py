"""The status cell: the status of each object that this node reports on, as a table.

The report cell writes the statuses to the API server, the API shows them.
"""

from __future__ import annotations

import time

import structlog

from cells.apply.loop import ApplyLoop
from cells.hive import Group, Health, Wiring
from cells.hive.jobs import Jobs
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.intent.cell import IntentLoop
from cells.intent.dialect_failures import DialectFailures
from cells.speaker.sessions import Sessions
from cells.state.node import ThisNode
from reconcilers.dialect import Dialect, ObjectStatus
from reconcilers.intent_tables import IntentTables
from reconcilers.report.status_rows import StatusRows
from speaker.api import SpeakerPort
from statedb import Database, Table

log = structlog.get_logger("waggle.status")

EVERY = 5.0
"""Polling interval for route counts, which emit no event, in seconds."""
LEAST = 0.2
"""Seconds between two reports at least."""


def make_statuses(
    database: Database,
    intent_tables: IntentTables,
    dialects: Group[Dialect],
    node: ThisNode,
    speaker: SpeakerPort,
) -> StatusRows:
    """Return what keeps the statuses of the enabled dialects' objects."""
    return StatusRows(
        database, intent_tables, dialects, node.name, speaker.peers, speaker.instances
    )


def status_table(statuses: StatusRows) -> Table[ObjectStatus]:
    """Return the table of the statuses."""
    return statuses.table


class StatusLoop:
    """The job that keeps the statuses' rows."""

    def __init__(
        self,
        statuses: StatusRows,
        sessions: Sessions,
        intent: IntentLoop,
        apply: ApplyLoop,
        health: Health,
        jobs: Jobs,
    ) -> None:
        self._statuses = statuses
        self._intent = intent
        self._signal = Signal(apply.followed(statuses.followed), sessions.table.observable)
        self._failures = DialectFailures(
            health,
            log,
            "a dialect cannot report; its last statuses are kept",
            "status.dialect_failed",
        )
        jobs.add("rounds", self._run)

    async def _run(self) -> None:
        await run_rounds(self._signal, self._report, interval=LEAST, poll=EVERY)

    async def _report(self, _: float | None) -> None:
        if self._intent.ready:
            self._statuses.run(time.time())
            self._failures.report(
                self._statuses.failures, "statuses cannot be computed", "follows the sessions"
            )


WIRING = Wiring(
    private=(make_statuses,),
    provides=(status_table,),
    invokes=(StatusLoop,),
)
