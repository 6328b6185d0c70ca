"""A gate of readiness that stays closed while the agent has no configuration that it should have.

A restart with a broken file, or without the configuration of the last run, is not ready: a rolling
update must not go on to the next node. The gate opens once, so that readiness does not change later.
"""

from __future__ import annotations

import asyncio

import structlog

from cells.hive import Health, Readiness
from cells.hive.jobs import Jobs
from cells.hive.signal import Signal
from cells.intent.cell import IntentLoop
from cells.sources.resources import MassWithdrawHold
from cells.state.claims import ClaimStore
from reconcilers.intent.usable import reason_unusable
from reconcilers.intent_tables import IntentTables
from resources.tables import Tables
from statedb import Database

GATE = "configuration"
SETTLE_TURNS = 16
"""Turns of the loop in which the intent follows a change of the sources."""

log = structlog.get_logger("waggle.readiness")


class ConfigurationGate:
    """The gate, and the job that opens it."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        intent_tables: IntentTables,
        intent: IntentLoop,
        claims: ClaimStore,
        hold: MassWithdrawHold,
        readiness: Readiness,
        health: Health,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._problems = tables.source_problems
        self._compiled = intent_tables.problems
        self._peers = intent_tables.peers
        self._intent = intent
        self._claims = claims
        self._hold = hold.seconds
        self._readiness = readiness
        self._health = health.scope("configuration")
        self._open = readiness.gate(GATE, "the first reading of the configuration")
        self._opened = asyncio.Event()
        jobs.add("configuration", self._run)

    async def _run(self) -> None:
        reported = ""
        with Signal(self._problems.observable, self._peers.observable, self._intent.done) as signal:
            while True:
                await signal.wait(settle_turns=SETTLE_TURNS)
                if not self._intent.complete:
                    continue
                reason = self.unusable()
                if not reason:
                    break
                self._readiness.wait_for(GATE, f"a usable configuration: {reason}")
                self._health.degraded(f"no usable configuration: {reason}")
                if reason != reported:
                    log.warning(
                        "not ready without a usable configuration",
                        event_name="readiness.unusable",
                        reason=reason,
                    )
                    reported = reason
        self._opened.set()
        self._open()
        self._health.remove()

    async def wait(self) -> None:
        """Wait until the configuration can be used."""
        await self._opened.wait()

    def unusable(self) -> str:
        """Return why the configuration cannot be used, or is not there; empty if it is."""
        snapshot = self._database.snapshot()
        return reason_unusable(
            self._problems.all(snapshot),
            self._compiled.all(snapshot),
            peers=self._peers.count(snapshot),
            remembered=self._claims.remembered if self._hold else 0,
        )
