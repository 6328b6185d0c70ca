"""Finds what becomes an Event: sessions, listeners, rejected configuration, failures, drains.

Reads the tables and receives the speaker's events; writes nothing. A problem is reported when it
appears and resolved when it disappears.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, final

from msgspec.structs import replace

from reconcilers import overdue
from reconcilers.bfd_session import UNKNOWN, BfdSession
from reconcilers.dialect import Dialect, ReportedStatuses, extended
from reconcilers.intent import drain
from reconcilers.intent_tables import IntentTables
from reconcilers.model import ObjectRef, Problem
from reconcilers.report.events import Occurrence, Regarding
from resources.core.kinds import NODE
from resources.tables import Tables
from speaker.api import ESTABLISHED, Event, InstanceStatus, PeerStatus, StateChanged
from statedb import Database, Revisions, Snapshot, Table


@final
class Occurrences:
    """Finds occurrences."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        intent: IntentTables,
        node: str,
        dialects: Sequence[Dialect],
        sessions: Callable[[], Sequence[PeerStatus]],
        instances: Callable[[], Sequence[InstanceStatus]],
        *,
        report: Callable[[Occurrence], None],
        resolved: Callable[[Occurrence], None],
        now: Callable[[], float],
        on_error: Callable[[str, Exception], None],
    ) -> None:
        """``sessions`` and ``instances`` return the state of all of them, ``now`` Unix time.

        ``report`` receives each occurrence, ``resolved`` each at its end; ``on_error`` takes
        the name of a dialect that cannot name its object, and the error.
        """
        self._sessions = sessions
        self._instances = instances
        self._now = now
        self._on_error = on_error
        self._database = database
        self._tables = tables
        self._intent = intent
        self._node = node
        self._of_dialects = extended(dialects, ReportedStatuses)
        self._kinds = tables.kinds
        self._report = report
        self._resolved = resolved
        self._always_read: tuple[Table[Any], ...] = (
            tables.source_problems,
            intent.problems,
            intent.reconcile_statuses,
            intent.instances,
            intent.peers,
            intent.bfd_sessions,
        )
        self._read: set[Table[Any]] = set(self._always_read)
        """The tables that the last comparison has read."""
        self._compared: Revisions | None = None
        """Of the tables at the last comparison; None if it has failed."""
        self._reported: set[Occurrence] = set()
        self._bfd: dict[tuple[str, str], BfdSession] = {}
        """The BFD sessions as of the last call, without sessions whose state was unknown then."""

    def receive(self, event: Event) -> None:
        """Report the occurrence that a session was established or lost, by a speaker's event."""
        if not isinstance(event, StateChanged) or event.new == event.old:
            return
        if event.new == ESTABLISHED:
            self._report(self._session(event, "Normal", "SessionEstablished", "is Established"))
        elif event.old == ESTABLISHED:
            text = f"is down: {event.reason or 'unknown'}"
            self._report(self._session(event, "Warning", "SessionDown", text))

    def is_due(self) -> bool:
        """Return whether a table has changed that the last comparison has read: any before one."""
        changed = self._database.changed(self._compared, self._database.snapshot())
        return not changed.isdisjoint(self._read)

    def compare(self) -> None:
        """Report the occurrences since the last call; resolve occurrences that have ended."""
        snapshot = self._database.snapshot()
        self._compared, self._read = None, set(self._always_read)
        occurrences = {
            *self._invalid(snapshot),
            *self._problems(snapshot),
            *self._failures(snapshot),
            *self._drained(snapshot),
            *self._overdue(snapshot),
            *self._listeners(snapshot),
        }
        for occurrence in sorted(occurrences - self._reported, key=repr):
            self._report(occurrence)
        for occurrence in self._reported - occurrences:
            self._resolved(occurrence)
        self._reported = occurrences
        for occurrence in self._bfd_changes(snapshot):
            self._report(occurrence)
        self._compared = snapshot.revisions

    def _bfd_changes(self, snapshot: Snapshot) -> Iterator[Occurrence]:
        """Yield the losses of BFD sessions since the last call, and the sessions that came Up.

        A session whose state is unknown goes on: the connection to its process is lost.
        """
        before, self._bfd = self._bfd, {}
        for row in self._intent.bfd_sessions.all(snapshot):
            key = (row.instance, row.peer)
            known = before.get(key)
            if row.state == UNKNOWN:
                if known is not None:
                    self._bfd[key] = known
                continue
            self._bfd[key] = row
            last_up = None if known is None or not known.up else known
            if last_up is not None and (not row.up or row.ups != last_up.ups):
                text = f"BFD is down: {row.diagnostic or row.state}"
                if row.up:
                    text = "BFD was down for a moment"
                yield self._of_bfd(snapshot, row, "Warning", "BFDSessionDown", text)
            elif row.up and last_up is None:
                yield self._of_bfd(snapshot, row, "Normal", "BFDSessionUp", "BFD is Up")

    def _of_bfd(
        self,
        snapshot: Snapshot,
        row: BfdSession,
        type_: Literal["Normal", "Warning"],
        reason: str,
        what: str,
    ) -> Occurrence:
        key = (row.instance, row.peer)
        occurrence = self._of_session(snapshot, key, row.address, type_, reason, what)
        return replace(occurrence, action="BFDSession")

    def _session(
        self, event: StateChanged, type_: Literal["Normal", "Warning"], reason: str, what: str
    ) -> Occurrence:
        snapshot = self._database.snapshot()
        key = (event.instance, event.peer)
        return self._of_session(snapshot, key, event.address, type_, reason, what)

    def _overdue(self, snapshot: Snapshot) -> Iterator[Occurrence]:
        """Sessions that do not come up, with the reason and the likely cause."""
        now = self._now()
        for session in self._sessions():
            if overdue.is_overdue(session, now):
                key, text = (session.instance, session.name), overdue.describe_overdue(session)
                yield self._of_session(
                    snapshot,
                    key,
                    session.address,
                    "Warning",
                    "SessionNotEstablished",
                    f"does not come up: {text}",
                )

    def _of_session(
        self,
        snapshot: Snapshot,
        key: tuple[str, str],
        address: str | None,
        type_: Literal["Normal", "Warning"],
        reason: str,
        what: str,
    ) -> Occurrence:
        """Return an occurrence at the session ``key`` (instance, peer)."""
        row = self._intent.peers.get(snapshot, key)
        where = f"instance {key[0]}, peer {key[1]} ({address or 'no address'})"
        if row is not None and row.peer_asn:
            asn = row.peer_asn
            where = f"{where[:-1]}, {f'{asn} AS' if isinstance(asn, str) else f'AS {asn}'})"
        origin = row.origins[0] if row is not None and row.origins else None
        regarding = self._regarding(snapshot, origin) or self._of_node(snapshot)
        return Occurrence(regarding, type_, reason, "BGPSession", f"{where} {what}")

    def _invalid(self, snapshot: Snapshot) -> Iterator[Occurrence]:
        """Objects that the API server accepted and Waggle does not."""
        for row in self._tables.source_problems.all(snapshot):
            kind = None if row.object is None else self._kinds.named(row.object.kind)
            if row.object is None or kind is None:
                continue
            ref = ObjectRef(kind.name, row.object.namespace, row.object.name)
            note = f"{row.field}: {row.message}" if row.field else row.message
            yield Occurrence(
                Regarding(ref, kind.api_versions[0], row.uid),
                "Warning",
                "InvalidConfiguration",
                "ReadConfiguration",
                note,
                shared=True,
                of_tenant=self._tables.is_of_tenant(row),
            )

    def _problems(self, snapshot: Snapshot) -> Iterator[Occurrence]:
        """Valid objects that cannot be applied, or not in full."""
        for row in self._intent.problems.all(snapshot):
            regarding = self._first(snapshot, row)
            if regarding is not None:
                yield Occurrence(
                    regarding,
                    "Warning",
                    "RejectedConfiguration",
                    "ApplyConfiguration",
                    f"{row.field}: {row.message}" if row.field else row.message,
                    shared=regarding.ref.name != self._node,
                    of_tenant=row.of_tenant,
                )

    def _failures(self, snapshot: Snapshot) -> Iterator[Occurrence]:
        """Objects that the reconcilers could not apply."""
        for row in self._intent.reconcile_statuses.all(snapshot):
            if row.error is not None:
                yield Occurrence(
                    self._of_node(snapshot),
                    "Warning",
                    "ApplyFailed",
                    "ApplyConfiguration",
                    f"{row.reconciler} {row.object}: {row.error}",
                )

    def _listeners(self, snapshot: Snapshot) -> Iterator[Occurrence]:
        """Instances that cannot listen, with the remedy where it is known."""
        for instance in self._instances():
            if instance.listen_error is not None:
                row = self._intent.instances.get(snapshot, instance.name)
                origin = None if row is None else row.origin
                yield Occurrence(
                    self._regarding(snapshot, origin) or self._of_node(snapshot),
                    "Warning",
                    "ListenFailed",
                    "Listen",
                    f"instance {instance.name}: {instance.listen_error}",
                )

    def _drained(self, snapshot: Snapshot) -> Iterator[Occurrence]:
        """A drain of the node, with its effect on the routes."""
        text = drain.describe(self._intent.peers.all(snapshot))
        if text is not None:
            yield Occurrence(self._of_node(snapshot), "Normal", "Drained", "Drain", text)

    def _first(self, snapshot: Snapshot, problem: Problem) -> Regarding | None:
        """Return the first object of a problem that exists, as an Event regards an object."""
        for ref in problem.objects:
            regarding = self._regarding(snapshot, ref)
            if regarding is not None:
                return regarding
        return None

    def _of_node(self, snapshot: Snapshot) -> Regarding:
        """Return the object that a dialect reports on for this node, or the Node."""
        for dialect, reported in self._of_dialects:
            self._read.update(dialect.compiled_tables)
            try:
                ref = reported.of_node(dialect, snapshot, self._node)
            except Exception as error:  # noqa: BLE001  one dialect's error is that dialect's
                self._on_error(dialect.name, error)
                continue
            regarding = self._regarding(snapshot, ref)
            if regarding is not None:
                return regarding
        ref = ObjectRef(NODE.name, "", self._node)
        return self._regarding(snapshot, ref) or Regarding(ref, NODE.api_versions[0])

    def _regarding(self, snapshot: Snapshot, ref: ObjectRef | None) -> Regarding | None:
        kind = None if ref is None else self._kinds.named(ref.kind)
        if ref is None or kind is None:
            return None
        table = self._tables.of(kind)
        self._read.add(table)
        row = table.get(snapshot, (ref.namespace, ref.name))
        if row is None:
            return None
        return Regarding(ref, kind.api_versions[0], row.metadata.uid)
