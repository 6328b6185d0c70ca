"""Reports of the BFD process: they end BGP sessions at once, and are rows of StateDB soon."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

import structlog
from opentelemetry import trace
from opentelemetry.trace import Span
from reactivex.subject import Subject

from cells.hive import Health
from cells.hive.jobs import Jobs
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.speaker.events import SpeakerEvents
from reconcilers.bfd.coupling import Coupling
from reconcilers.bfd.process.process_messages import (
    REPORT_SECONDS,
    Change,
    Changes,
    Message,
    ProcessStatus,
    Statuses,
)
from reconcilers.bfd.reconciler import BfdReconciler
from reconcilers.bfd.rows import NO_PROCESS, counters_row, process_row, session_row
from reconcilers.bfd_session import BfdCounters, BfdSession
from reconcilers.intent_tables import IntentTables
from reconcilers.process.client import ProcessClient
from reconcilers.round_span import round_span
from resources.row_updates import replace_all
from speaker.api import ESTABLISHED, Event, PathDown, SpeakerPort, StateChanged
from speaker.bfd.session_values import diagnostic_name
from statedb import Database, Snapshot

PROGRAM: Final = "waggle-bfd"
ROW_INTERVAL_SECONDS: Final = 0.1
"""Between two writes of rows, at least."""
SILENT_SECONDS: Final = 4 * REPORT_SECONDS
"""Without a message, after which a process stands still, and its sessions are unknown."""
START_SECONDS: Final = 10.0
"""Without a connection, until that is a problem of each peer with BFD."""

BfdClient = ProcessClient[Message]

log = structlog.get_logger("waggle.bfd")
_tracer = trace.get_tracer("waggle.bfd")


class BfdFollower:
    """Ends BGP sessions whose path is down, and keeps the tables of BFD."""

    def __init__(
        self,
        database: Database,
        intent_tables: IntentTables,
        speaker: SpeakerPort,
        events: SpeakerEvents,
        client: BfdClient,
        sessions: BfdReconciler,
        health: Health,
        jobs: Jobs,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._intent = intent_tables
        self._speaker = speaker
        self._client = client
        self._sessions = sessions
        self._health = health.scope("scheduling")
        self._clock = clock
        self._coupling = Coupling(sessions.peers_of)
        self._status: ProcessStatus | None = None
        self._lost_at = clock()
        self._received_at = clock()
        """When the last message came."""
        self._was_connected = False
        self.changes: Subject[Change] = Subject()
        """Changes of sessions, after their effect on BGP."""
        client.follow(self._connected, self._received, self._disconnected)
        events.observable.subscribe(self._event)
        tables = (intent_tables.peers, intent_tables.instances)
        self._signal = Signal(
            events.observable, sessions.changed, *(table.observable for table in tables)
        )
        jobs.add("rows", self._run)

    # From the process

    def _connected(self) -> None:
        self._received_at = self._clock()
        self._sessions.connected()
        self._signal.raise_flag()

    def _disconnected(self) -> None:
        self._sessions.disconnected()
        self._signal.raise_flag()

    def _received(self, message: Message) -> None:
        now = self._received_at = self._clock()
        match message:
            case Changes(changes):
                with round_span(_tracer, "bfd.change", ()) as span:
                    # First of all: a path that is down costs packets.
                    self._end(self._coupling.changed(changes, now))
                    for change in changes:
                        self._sessions.state_changed(change)
                        _report_change(change, span)
                        self.changes.on_next(change)
            case Statuses():
                self._sessions.reported(message)
                self._end(self._coupling.reported(message.sessions, now))
            case ProcessStatus():
                self._status = message
                self._report(message)
        self._signal.raise_flag()

    def _end(self, paths: Sequence[PathDown]) -> None:
        if not paths:
            return
        self._speaker.paths_down(paths)
        for path in paths:
            log.warning(
                "BFD found the path to a peer down",
                event_name="bfd.path_down",
                instance=path.instance,
                peer=path.peer,
                reason=path.reason,
            )

    def _report(self, status: ProcessStatus) -> None:
        if status.problems:
            raised = (
                f"; intervals below {status.least_interval // 1000} ms are raised to that"
                if status.least_interval
                else ""
            )
            self._health.degraded(f"{'; '.join(status.problems)}{raised}")
        else:
            self._health.ok("scheduled before ordinary processes")

    # From BGP

    def _event(self, event: Event) -> None:
        if isinstance(event, StateChanged):
            self._coupling.bgp_changed(
                (event.instance, event.peer), self._clock(), established=event.new == ESTABLISHED
            )

    def holds(self, instance: str, peer: str) -> bool:
        """Return whether a peer waits for its BFD session."""
        return self._coupling.holds((instance, peer), self._sessions.key_of(instance, peer))

    # Rows

    async def _run(self) -> None:
        async def write(_: float | None) -> float | None:
            return self.refresh()

        await run_rounds(self._signal, write, interval=ROW_INTERVAL_SECONDS)

    def refresh(self) -> float | None:
        """Write the rows that differ, and judge again what is due.

        Returns the seconds until the next call that no event causes, if one is due.
        """
        now = self._clock()
        self._find_neighbors()
        snapshot = self._database.snapshot()
        self._sessions.read(snapshot)
        self._coupling.forget(self._sessions.wanted_sessions)
        self._end(self._coupling.due(now))
        silent_at = self._received_at + SILENT_SECONDS
        connected = self._client.is_connected and now < silent_at
        if self._was_connected and not connected:
            self._lost_at = now
        self._was_connected = connected
        lost_for = now - self._lost_at
        problem = NO_PROCESS if not connected and lost_for >= START_SECONDS else ""
        self._write(snapshot, connected=connected, problem=self._client.problem or problem)
        dues = [self._coupling.next_due, silent_at if connected else None]
        if not connected and lost_for < START_SECONDS:
            dues.append(self._lost_at + START_SECONDS)
        return min((max(0.0, due - now) for due in dues if due is not None), default=None)

    def _find_neighbors(self) -> None:
        """Note the neighbors that were found on interfaces."""
        self._sessions.neighbors_found(
            {
                (status.instance, status.name): status.address
                for status in self._speaker.peers()
                if status.interface is not None and status.address
            }
        )

    def _write(self, snapshot: Snapshot, *, connected: bool, problem: str) -> None:
        rows: list[BfdSession] = []
        counters: list[BfdCounters] = []
        for peer in self._intent.peers.all(snapshot):
            if peer.bfd is None:
                continue
            name = (peer.instance, peer.name)
            key = self._sessions.key_of(*name)
            status = None if key is None else self._sessions.statuses.get(key)
            rows.append(
                session_row(
                    peer,
                    key,
                    status,
                    holds=self._coupling.holds(name, key),
                    connected=connected,
                    problem=problem,
                )
            )
            if status is not None:
                counters.append(counters_row(peer, status))
        of_process = process_row(self._status, connected=connected)
        tables = self._intent.bfd_sessions, self._intent.bfd_counters, self._intent.bfd_process
        with self._database.write(*tables) as txn:
            replace_all(txn, tables[0], rows)
            replace_all(txn, tables[1], counters)
            replace_all(txn, tables[2], (of_process,))


def _report_change(change: Change, span: Span) -> None:
    """Write a change of state to the log and to its span."""
    fields = {
        "neighbor": change.key.peer,
        "device": change.key.device,
        "before": str(change.before),
        "after": str(change.after),
        "diagnostic": diagnostic_name(change.diagnostic),
        "neighbor_state": str(change.remote_state),
    }
    log.info("BFD session changed", event_name="bfd.changed", **fields)
    if span.is_recording():
        attributes = {
            "network.peer.address": change.key.peer,
            "network.interface.name": change.key.device,
            "waggle.bfd.former_state": str(change.before),
            "waggle.bfd.state": str(change.after),
            "waggle.bfd.diagnostic": diagnostic_name(change.diagnostic),
            "waggle.bfd.neighbor_state": str(change.remote_state),
        }
        span.add_event("bfd.changed", attributes)
