"""Reconciles peers, last of all: a session never opens before its routes are in its route set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from reconcilers.apply.passwords import Passwords
from reconcilers.apply.received_limits import NO_RECEIVED_LIMITS, ReceivedLimits
from reconcilers.apply.to_speaker import peer_config
from reconcilers.intent_tables import KEY, IntentTables
from reconcilers.model import Instance, Peer
from reconcilers.sliced_work import Slices, at_once
from reconcilers.target.reconciler import Description, ObjectKey, Parts
from reconcilers.target.single_value import SingleValue
from resources.tables import Tables
from speaker.api import DynamicPeerConfig, PeerConfig, SpeakerPort
from statedb import Change, Database, Snapshot

NO_BFD: Final = "BFD is not Up, for which this peer waits (strict)"


class Peers(SingleValue):
    """Objects are ``(instance, peer)``, values `PeerConfig`."""

    description = Description(
        name="peer",
        order=40,
        tables=("instances", "peers", "secrets", "bfd-sessions"),
        target="speaker",
        summary="peers: session settings, password, families, the route set that they get",
    )

    def __init__(
        self,
        db: Database,
        intent: IntentTables,
        resources: Tables,
        speaker: SpeakerPort,
        received: ReceivedLimits = NO_RECEIVED_LIMITS,
        *,
        bfd: bool = False,
    ) -> None:
        """``received``: what protects the node from the routes of its peers.

        ``bfd``: whether this node has BFD sessions, for which strict peers wait.
        """
        self._bfd = bfd
        self._received = received
        self._intent = intent
        self._passwords = Passwords(db, intent, resources)
        self._speaker = speaker
        self._instance_changes = intent.instances.changes(db)
        self._peer_changes = intent.peers.changes(db)
        self._bfd_changes = intent.bfd_sessions.changes(db)
        self._asns: dict[str, int] = {}
        """By instance: the AS number, all that peers depend on."""

    def changes(self, snapshot: Snapshot) -> Slices[dict[ObjectKey, Parts]]:
        """Return changed peers, peers of changed instances, and peers with changed passwords."""
        peers = self._intent.peers
        changed: dict[ObjectKey, Parts] = {}
        for change in self._peer_changes.next(snapshot):
            changed[change.row.instance, change.row.name] = None
            if self._passwords.follow(change.row.password):
                tables = dict.fromkeys((*self.description.tables, *self._passwords.tables))
                self.description = replace(self.description, tables=tuple(tables))
        for instance in self._instance_changes.next(snapshot):
            if self._concerns_peers(instance):
                for row in peers.prefix(snapshot, KEY, (instance.row.name,)):
                    changed[row.instance, row.name] = None
        for session in self._bfd_changes.next(snapshot):
            if session.row.strict:
                changed[session.row.instance, session.row.peer] = None
        for row in self._passwords.changed(snapshot):
            changed[row.instance, row.name] = None
        return at_once(changed)

    def _concerns_peers(self, change: Change[Instance]) -> bool:
        """True of an instance that comes or goes, or has another AS number."""
        name, asn = change.row.name, change.row.local_asn
        if change.deleted:
            self._asns.pop(name, None)
            return True
        before, self._asns[name] = self._asns.get(name), asn
        return before != asn

    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        """Return the peers of the intent, to reconcile with the speaker's."""
        return ((row.instance, row.name) for row in self._intent.peers.all(snapshot))

    def actual_objects(self) -> Iterable[ObjectKey]:
        """Return the peers of all instances of the speaker, to reconcile with the intent's."""
        for instance in self._speaker.instance_configs():
            for name in self._speaker.peer_configs(instance):
                yield instance, name

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        """True if the speaker shall have a peer: the intent has it, and its instance."""
        return (
            self._intent.peers.get(snapshot, key) is not None
            and self._intent.instances.get(snapshot, key[0]) is not None
        )

    def possible(self, key: ObjectKey) -> bool:
        """True if the speaker has the instance of a peer."""
        return self._speaker.instance_config(key[0]) is not None

    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> PeerConfig:
        """Return the configuration of a peer of the intent. Raises `InvalidConfig`."""
        row = self._intent.peers.get(snapshot, key)
        instance = self._intent.instances.get(snapshot, key[0])
        if row is None or instance is None:
            raise KeyError(key)
        password_of = self._passwords.reader(snapshot)
        waits = row.down_reason is None and self._waits_for_bfd(snapshot, row)
        if waits:
            row = replace(row, down_reason=NO_BFD)
        config = peer_config(row, instance.local_asn, password_of, self._received)
        return replace(config, disabled_for_a_while=True) if waits else config

    def _waits_for_bfd(self, snapshot: Snapshot, row: Peer) -> bool:
        """Return whether the session may not be Established yet (`BfdProfile.strict`)."""
        if not self._bfd or row.bfd is None or not row.bfd.strict:
            return False
        session = self._intent.bfd_sessions.get(snapshot, (row.instance, row.name))
        if session is None or not session.strict:
            # Until that is known: a peer that is to become strict may be Established.
            present = self._speaker.peer_config(row.instance, row.name)
            return present is None or present.disabled_reason == NO_BFD
        return session.holds_bgp

    def actual_value(self, key: ObjectKey) -> PeerConfig | DynamicPeerConfig | None:
        """Return the configuration of a peer of the speaker; None without it."""
        return self._speaker.peer_config(*key)

    def set_value(self, key: ObjectKey, value: PeerConfig) -> None:
        """Create or change a peer of the speaker."""
        self._speaker.set_peer(key[0], value)

    def delete(self, key: ObjectKey) -> None:
        """Remove a peer from the speaker."""
        self._speaker.remove_peer(*key)
