"""The state of each session: the table ``sessions``, the health tree, the log of failing sessions.

Reads the speaker after its events, and writes only what differs; routes do not wait for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable

import msgspec
import structlog

from cells.hive import Health
from cells.hive.jobs import Jobs
from cells.hive.rounds import in_slices, run_rounds
from cells.hive.signal import Signal
from cells.speaker.events import SpeakerEvents
from reconcilers import overdue
from reconcilers.sliced_work import Slices
from speaker.api import ESTABLISHED, PeerStatus, SpeakerPort
from statedb import Database, Index, Table

REFRESH_INTERVAL_SECONDS = 0.1
"""Between two readings of all sessions, at least."""

log = structlog.get_logger("waggle.speaker")


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Row of the table ``sessions``."""

    instance: str
    peer: str
    address: str | None
    state: str
    reason: str
    """Why it is not Established; empty when it is."""
    since: float
    """When it became Established, or since when it is not, as Unix time."""
    overdue: bool = False
    """Whether it should have come up by now."""


class Sessions:
    """The sessions as a table and in the health tree, brought up to date after events."""

    def __init__(
        self,
        database: Database,
        speaker: SpeakerPort,
        events: SpeakerEvents,
        health: Health,
        jobs: Jobs,
        now: Callable[[], float] = time.time,
    ) -> None:
        """``now`` is Unix time."""
        self.table: Table[Session] = database.table(
            "sessions", primary=Index("key", key=lambda row: (row.instance, row.peer))
        )
        self._database = database
        self._speaker = speaker
        self._events = events
        self._signal = Signal(events.observable)
        self._health = health
        self._now = now
        self._instances: set[str] = set()
        self._logged: dict[tuple[str, str], set[str]] = {}
        """Of the sessions that are overdue: the reasons that the log has."""
        jobs.add("sessions", self._run)

    async def _run(self) -> None:
        async def refresh(_: float | None) -> float | None:
            return await in_slices(self.refresh())

        # Routes do not depend on it, so a thousand flapping sessions cost one pass.
        await run_rounds(self._signal, refresh, interval=REFRESH_INTERVAL_SECONDS)

    def poke(self) -> None:
        """Refresh soon without an event (a peer was added or removed)."""
        self._signal.raise_flag()

    def refresh(self) -> Slices[float | None]:
        """Compare the speaker's sessions with the table, and write what differs, in slices.

        Returns the seconds until the next session is overdue, None where no event makes one so.
        """
        self._forget_instances()
        now, counted = self._now(), set(self._events.counts)
        present: set[tuple[str, str]] = set()
        logged: dict[tuple[str, str], set[str]] = {}
        soonest: float | None = None
        for statuses in self._speaker.peer_slices():
            self._log_overdue(statuses, now, logged)
            self._write(statuses, now)
            for status in statuses:
                present.add((status.instance, status.name))
                pause = overdue.due_in(status, now)
                if pause is not None and (soonest is None or pause < soonest):
                    soonest = pause
            yield
        self._logged = logged
        self._remove(present)
        # Sessions that were added since the first slice are not in it.
        self._events.forget(counted - present)
        return soonest

    def _write(self, statuses: Iterable[PeerStatus], now: float) -> None:
        snapshot = self._database.snapshot()
        rows = [
            Session(
                instance=status.instance,
                peer=status.name,
                address=status.address,
                state=status.state,
                reason=status.reason,
                since=round(status.since, 3),
                overdue=overdue.is_overdue(status, now),
            )
            for status in statuses
        ]
        changed = [row for row in rows if self.table.get(snapshot, (row.instance, row.peer)) != row]
        if not changed:
            return
        with self._database.write(self.table) as txn:
            for row in changed:
                self.table.upsert(txn, row)
        for row in changed:
            scope = self._health.scope(row.instance).scope(row.peer)
            if row.state == ESTABLISHED:
                scope.ok(ESTABLISHED)
            else:
                # Without the state, which passes in every attempt: the time is that of the loss.
                scope.degraded(f"not Established: {row.reason}")

    def _remove(self, present: Container[tuple[str, str]]) -> None:
        """Remove the rows of peers that are removed."""
        rows = self.table.all(self._database.snapshot())
        gone = [key for row in rows if (key := (row.instance, row.peer)) not in present]
        if not gone:
            return
        with self._database.write(self.table) as txn:
            for key in gone:
                self.table.delete(txn, key)
        for instance, peer in gone:
            self._health.scope(instance).scope(peer).remove()

    def _log_overdue(
        self,
        statuses: Iterable[PeerStatus],
        now: float,
        logged: dict[tuple[str, str], set[str]],
    ) -> None:
        """Log each session that does not come up: once, and again for another reason."""
        for status in statuses:
            if not overdue.is_overdue(status, now):
                continue
            key = (status.instance, status.name)
            reasons = logged[key] = self._logged.get(key, set())
            if status.reason in reasons:
                continue
            reasons.add(status.reason)
            log.warning(
                "session does not come up",
                event_name="peer.not_established",
                instance=status.instance,
                peer=status.name,
                peer_address=status.address,
                state=status.state,
                reason=status.reason,
                likely_cause=status.likely_cause or None,
                failures=status.failures,
                down_seconds=round(now - status.since),
            )

    def _forget_instances(self) -> None:
        present = {status.name for status in self._speaker.instances()}
        for name in self._instances - present:
            self._health.scope(name).remove()
        self._instances = present
