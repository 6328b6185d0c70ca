"""The readiness cell: a gate that opens when every peer has received its initial table.

The agent is ready once every peer has received the initial table and End-of-RIB, or after a timeout.
In a rolling update the agent of the next node is stopped when this agent is ready, so ready before its
routes are advertised would lose traffic. A peer that is down must not delay readiness for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import structlog

from cells.apply.loop import FirstPass
from cells.hive import Group, Health, Readiness, Wiring
from cells.hive.jobs import Jobs
from cells.intent.configuration_gate import ConfigurationGate
from cells.options import ReadinessOptions
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Peer
from resources.enumeration import enumerate_some
from resources.source import Source
from speaker.api import PeerStatus, SpeakerPort
from statedb import Database

GATE = "peers"
SOURCE_GATE = "source"
NO_SOURCE = "a source of objects: set --manifests DIR or --kubeconfig FILE"
POLL_INTERVAL_SECONDS = 0.2
"""Between two readings of the sessions, until the gate is open."""
NAMED_PEERS = 5
"""Peers that a message names."""

log = structlog.get_logger("waggle.readiness")


def without_initial_table(
    wanted: Iterable[Peer], sessions: Mapping[tuple[str, str], PeerStatus]
) -> dict[str, str]:
    """Return the peers that should be up and have not received the initial table, with the reason."""
    missing = {}
    for peer in wanted:
        if peer.down_reason is not None:
            continue
        session = sessions.get((peer.instance, peer.name))
        name = f"{peer.instance}/{peer.name}"
        if session is None:
            missing[name] = "there is no session"
        elif not session.established:
            missing[name] = session.reason or session.state
        elif not session.initial_table_sent or session.queued_octets:
            missing[name] = "the initial table has not been sent"
    return missing


class ReadinessGate:
    """The gate, and the job that opens it."""

    def __init__(
        self,
        database: Database,
        intent_tables: IntentTables,
        first_pass: FirstPass,
        configuration: ConfigurationGate,
        speaker: SpeakerPort,
        options: ReadinessOptions,
        sources: Group[Source],
        readiness: Readiness,
        health: Health,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._peers = intent_tables.peers
        self._first_pass = first_pass
        self._configuration = configuration
        self._speaker = speaker
        self._timeout = options.timeout_seconds
        self._readiness = readiness
        self._health = health
        if not sources:
            # Without a source there is no configuration: ready would be a promise of nothing.
            readiness.gate(SOURCE_GATE, NO_SOURCE)
            health.degraded(f"not ready without {NO_SOURCE}")
            return
        self._open = readiness.gate(GATE, "the initial table of every peer")
        jobs.add("gate", self._run)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        self._health.ok("waiting for the first complete apply round")
        await self._first_pass.wait()
        await self._configuration.wait()
        began = loop.time()
        while True:
            missing, wanted = self._state()
            if len(missing) < wanted:
                self._readiness.serving()
            waited = loop.time() - began
            if not missing or waited >= self._timeout:
                break
            self._readiness.wait_for(GATE, f"{_names(missing)}, for {self._timeout:g} s at most")
            await asyncio.sleep(min(POLL_INTERVAL_SECONDS, self._timeout - waited))
        self._open()
        if missing:
            self._health.ok(f"ready without {_names(missing)}")
            log.warning(
                "ready without all peers",
                event_name="readiness.timeout",
                waited=round(waited, 1),
                missing=len(missing),
                peer=min(missing),
                reason=missing[min(missing)],
            )
        else:
            self._health.ok("every peer has received the initial table")
            log.info(
                "every peer has received the initial table",
                event_name="readiness.done",
                waited=round(waited, 1),
            )

    def _state(self) -> tuple[dict[str, str], int]:
        """Return the peers without their initial table, with reasons, and how many shall have it."""
        sessions = {(peer.instance, peer.name): peer for peer in self._speaker.peers()}
        wanted = [p for p in self._peers.all(self._database.snapshot()) if p.down_reason is None]
        return without_initial_table(wanted, sessions), len(wanted)


def _names(missing: Mapping[str, str]) -> str:
    names = sorted(missing)
    return f"peer{'s' * (len(names) > 1)} {enumerate_some(names, NAMED_PEERS)}"


WIRING = Wiring(
    private=(ConfigurationGate,),
    invokes=(ReadinessGate,),
)
