"""The reach cell: ready is only who has told the peers everything, or has waited long enough for them.

An agent that is updated node by node must not be called ready before its routes are out: the next one
would be taken away meanwhile. A peer that is down must not hold that up for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
import structlog

from cells.apply.loop import FirstPass
from cells.hive import Cell, Health, Jobs, Options, Readiness, setting
from reconcilers.model import Peer
from reconcilers.tables import IntentTables
from speaker.api import PeerStatus, SpeakerPort
from statedb import Database

GATE = "peers"
LOOK = 0.2
"""Seconds between two looks at the sessions, until the gate is open."""
SHOWN = 5
"""Peers that are named."""

log = structlog.get_logger("waggle.reach")


class ReachOptions(Options, frozen=True):
    """Options of the reach cell."""

    timeout_seconds: Annotated[
        float,
        msgspec.Meta(ge=0.0),
        setting(
            "how long, once the first pass is done, peers that are not reached hold up readiness",
            flag="--ready-timeout-seconds",
        ),
    ] = 60.0


def unreached(
    wanted: Iterable[Peer], sessions: Mapping[tuple[str, str], PeerStatus]
) -> dict[str, str]:
    """Name the peers that shall be up and have not been told everything, and why that is."""
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
            missing[name] = "it has not been told everything"
    return missing


class Reach:
    """The gate, and the job that opens it."""

    def __init__(
        self,
        database: Database,
        intent_tables: IntentTables,
        first_pass: FirstPass,
        speaker: SpeakerPort,
        options: ReachOptions,
        readiness: Readiness,
        health: Health,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._peers = intent_tables.peers
        self._first_pass = first_pass
        self._speaker = speaker
        self._timeout = options.timeout_seconds
        self._readiness = readiness
        self._health = health
        self._open = readiness.gate(GATE, "the peers to be told everything")
        jobs.add("gate", self._run)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        self._health.ok("waiting for the first complete apply round")
        await self._first_pass.wait()
        began = loop.time()
        while True:
            missing = self.missing()
            waited = loop.time() - began
            if not missing or waited >= self._timeout:
                break
            self._readiness.wait_for(GATE, f"{_names(missing)}, for {self._timeout:g} s at most")
            await asyncio.sleep(min(LOOK, self._timeout - waited))
        self._open()
        if missing:
            self._health.ok(f"ready without {_names(missing)}")
            log.warning(
                "ready though not all peers are reached",
                event_name="reach.timeout",
                waited=round(waited, 1),
                missing=len(missing),
                peer=min(missing),
                reason=missing[min(missing)],
            )
        else:
            self._health.ok("all peers were told everything")
            log.info("all peers are reached", event_name="reach.done", waited=round(waited, 1))

    def missing(self) -> dict[str, str]:
        """Name the peers that are not reached now, with the reasons."""
        sessions = {(one.instance, one.name): one for one in self._speaker.peers()}
        return unreached(self._peers.all(self._database.snapshot()), sessions)


def _names(missing: Mapping[str, str]) -> str:
    names = sorted(missing)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"peer{'s' * (len(names) > 1)} {', '.join(names[:SHOWN])}{more}"


CELL = Cell(
    name="reach",
    description="Holds up readiness until the peers have been told everything.",
    options=ReachOptions,
    invokes=(Reach,),
)
