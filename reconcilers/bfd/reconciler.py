"""Reconciles the sessions of the BFD process with the intent.

Objects are sessions, named by their ends: several peers with one address share a session. The actual
state is what the process has reported, and what was sent to it since. Operations send a message and
return.

Sessions that the process has from an agent before, and that no peer wants, are kept for
`KEPT_SECONDS`: the neighbor of an interface is not known at once. The time begins when all dialects
have been read: which peers one has that waits for its kinds, and which sessions, is not known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import Final, final

from msgspec.structs import replace
from reactivex import Observable
from reactivex.subject import Subject

from reconcilers.bfd.process.process_messages import (
    Change,
    Message,
    RemoveSessions,
    SessionStatus,
    SetSessions,
    Statuses,
    Wanted,
)
from reconcilers.bfd.wanted_session import shared_settings, wanted_session
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Peer
from reconcilers.sliced_work import Slices, at_once
from reconcilers.target.reconciler import Description, NotNow, ObjectKey, Parts
from reconcilers.target.single_value import SingleValue
from resources.host import Host
from resources.tables import Tables
from speaker.bfd.session_values import Key, SessionKey, Settings, State
from statedb import Database, Snapshot

KEPT_SECONDS: Final = 60.0
_NO_HOST: Final = Host()


@final
class BfdReconciler(SingleValue):
    """Objects are ``(peer, local, device, hops)``, values `Settings`."""

    def __init__(
        self,
        database: Database,
        intent: IntentTables,
        tables: Tables,
        send: Callable[[Message], None],
        clock: Callable[[], float] = time.monotonic,
        *,
        keys: Callable[[str, str], Key | None] = lambda *_: None,
    ) -> None:
        """``send``: a message to the process; dropped without a connection.

        ``keys`` returns the key of a session, given instance and peer; after a change of one the
        sessions are to be computed again (`keys_changed`).
        """
        self._changes: Subject[object] = Subject()
        self.description = Description(
            name="bfd-session",
            order=60,
            tables=("instances", "peers", "host"),
            target="bfd",
            summary="BFD sessions of waggle-bfd: neighbors, intervals",
            stream=self._changes,
        )
        self._database = database
        self._intent = intent
        self._host = tables.host
        self._send = send
        self._keys_of = keys
        self._clock = clock
        self._addresses: dict[tuple[str, str], str] = {}
        """Of peers on an interface, as long as they are configured."""
        self.statuses: dict[SessionKey, SessionStatus] = {}
        self._settings: dict[SessionKey, Settings] = {}
        """The sessions of the process, as of all messages that were sent to it."""
        self._own: set[SessionKey] = set()
        """Sessions that this agent has set."""
        self._listed_at: float | None = None
        """When the process had listed its sessions; None without a connection."""
        self._read_at = clock()
        """When a dialect was last found unread."""
        self._wanted: dict[SessionKey, Settings] = {}
        self._keys: dict[tuple[str, str], SessionKey] = {}
        self._peers: dict[SessionKey, list[tuple[str, str]]] = {}
        self._read: object = None
        """The revisions of the tables from which the wanted sessions are computed."""
        self._outdated = True
        """Whether the process may have other sessions than it shall have."""

    # Readings

    @property
    def changed(self) -> Observable[object]:
        """Emits when the reconciler of BFD sessions has something to do."""
        return self._changes

    @property
    def listed(self) -> bool:
        """Whether the reconciler knows which sessions the BFD process has."""
        return self._listed_at is not None

    @property
    def wanted_sessions(self) -> Mapping[SessionKey, Settings]:
        """The BFD sessions to reconcile, with their settings, as of the last round."""
        return self._wanted

    def key_of(self, instance: str, peer: str) -> SessionKey | None:
        """Return the reconciled BFD session of a peer; None without one."""
        return self._keys.get((instance, peer))

    def peers_of(self, key: SessionKey) -> Collection[tuple[str, str]]:
        """Return the peers whose path a reconciled BFD session watches."""
        return self._peers.get(key, ())

    # Reports of the process and the speaker

    def connected(self) -> None:
        """Begin a connection to the BFD process: it lists its sessions to the reconciler."""
        self._listed_at = None
        self.statuses.clear()
        self._settings.clear()

    def disconnected(self) -> None:
        """End a connection: the BFD process lists its sessions to the reconciler again."""
        self._listed_at = None

    def reported(self, message: Statuses) -> None:
        """Take the statuses of sessions that the BFD process reports to the reconciler."""
        for status in message.sessions:
            if self.listed and status.key not in self._settings:
                continue  # removed since it was sent
            self.statuses[status.key] = status
            self._settings.setdefault(status.key, status.settings)
        if message.last:
            self._listed_at = self._clock()
            self._read = None
            self._outdated = True
            self._changes.on_next(None)

    def state_changed(self, change: Change) -> None:
        """Take a change of a reconciled BFD session: its next status comes later."""
        status = self.statuses.get(change.key)
        if status is not None:
            self.statuses[change.key] = status._replace(
                state=change.after,
                diagnostic=change.diagnostic,
                since=time.time(),
                ups=status.ups + (change.after is State.UP),
                remote_state=change.remote_state,
                remote_diagnostic=change.remote_diagnostic,
            )

    def neighbors_found(self, addresses: Mapping[tuple[str, str], str]) -> None:
        """Take the addresses of peers on interfaces, to reconcile their BFD sessions."""
        if any(self._addresses.get(peer) != address for peer, address in addresses.items()):
            self._addresses.update(addresses)
            self._read = None
            self._changes.on_next(None)

    def keys_changed(self) -> None:
        """Reconcile the BFD sessions soon, with the present keys of authentication."""
        self._read = None
        self.read(self._database.snapshot())
        self._changes.on_next(None)

    def read(self, snapshot: Snapshot) -> None:
        """Read which BFD sessions are desired, if instances, peers or the host have changed."""
        tables = (self._intent.instances, self._intent.peers, self._host)
        revisions = tuple(table.revision(snapshot) for table in tables)
        if revisions == self._read:
            return
        self._read = revisions
        host = next(self._host.all(snapshot), None) or _NO_HOST
        keys: dict[tuple[str, str], SessionKey] = {}
        settings: dict[SessionKey, list[Settings]] = {}
        peers: dict[SessionKey, list[tuple[str, str]]] = {}
        # Sessions of a former agent, too: a single hop stays one.
        present = {*self.statuses, *self._keys.values()}
        rows = sorted(self._intent.peers.all(snapshot), key=lambda row: (row.instance, row.name))
        for peer in rows:
            session = self._session(snapshot, peer, host, present)
            if session is not None:
                key, own = session
                name = (peer.instance, peer.name)
                keys[name] = key
                settings.setdefault(key, []).append(own)
                peers.setdefault(key, []).append(name)
        self._wanted = {key: shared_settings(of) for key, of in settings.items()}
        self._keys, self._peers = keys, peers
        self._outdated = True

    def _session(
        self, snapshot: Snapshot, peer: Peer, host: Host, present: Container[SessionKey]
    ) -> tuple[SessionKey, Settings] | None:
        instance = self._intent.instances.get(snapshot, (peer.instance,))
        if instance is None or peer.bfd is None:
            return None
        name = (peer.instance, peer.name)
        session = wanted_session(peer, instance, self._addresses.get(name), host, present)
        if session is None or (own := self._keys_of(*name)) is None:
            return session
        return session[0], replace(session[1], key=own)

    # The reconciler

    def changes(self, snapshot: Snapshot) -> Slices[dict[ObjectKey, Parts]]:
        """Return the BFD sessions to reconcile: the process has other settings than desired."""
        self.read(snapshot)
        if not self.listed or not self._outdated:
            return at_once({})
        self._outdated = False
        wanted, present = self._wanted, self._settings
        keys = {*present, *wanted}
        return at_once({_object(k): None for k in keys if wanted.get(k) != present.get(k)})

    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        """Return the desired BFD sessions; none before the process has listed its own."""
        self.read(snapshot)
        return map(_object, self._wanted) if self.listed else ()

    def actual_objects(self) -> Iterable[ObjectKey]:
        """Return the actual BFD sessions, once the process has listed them."""
        return map(_object, list(self._settings)) if self.listed else ()

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        """True if a BFD session is desired, by a peer or several."""
        self.read(snapshot)
        return _session_key(key) in self._wanted

    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> Settings:
        """Return the desired settings of a BFD session."""
        self.read(snapshot)
        return self._wanted[_session_key(key)]

    def actual_value(self, key: ObjectKey) -> Settings | None:
        """Return the actual settings of a BFD session in the process; None without it."""
        return self._settings.get(_session_key(key))

    def set_value(self, key: ObjectKey, value: Settings) -> None:
        """Reconcile a BFD session: the process gets it with these settings."""
        session = _session_key(key)
        self._send(SetSessions((Wanted(session, value),)))
        self._settings[session] = value
        self._own.add(session)

    def delete(self, key: ObjectKey) -> None:
        """Prune a session of the BFD process. Raises `NotNow`, if an earlier agent has set it."""
        session = _session_key(key)
        if self._listed_at is None:
            raise NotNow(KEPT_SECONDS)
        if session not in self._own:
            now = self._clock()
            if self._intent.pending_dialects.count(self._database.snapshot()):
                self._read_at = now
            left = max(self._listed_at, self._read_at) + KEPT_SECONDS - now
            if left > 0:
                raise NotNow(left)
        self._send(RemoveSessions((session,)))
        self._settings.pop(session, None)
        self.statuses.pop(session, None)
        self._own.discard(session)


def _object(key: SessionKey) -> ObjectKey:
    return (key.peer, key.local, key.device, "multihop" if key.multihop else "")


def _session_key(key: ObjectKey) -> SessionKey:
    peer, local, device, hops = key
    return SessionKey(peer, local, device, bool(hops))
