"""Reconciles peers, last of all: a session never opens before its routes are in its route set."""

from __future__ import annotations

from collections.abc import Iterable

from reconcilers.apply.convert import peer_config
from reconcilers.apply.reconciler import Description, ObjectKey, Parts
from reconcilers.apply.single_value import SingleValue
from reconcilers.model import FieldRef, PasswordRef
from reconcilers.tables import BY_SECRET, KEY, IntentTables
from resources.core import Secret
from speaker.api import DynamicPeerConfig, PeerConfig, SpeakerPort
from statedb import Database, Snapshot, Table


class Peers(SingleValue):
    """Objects are ``(instance, peer)``, values `PeerConfig`."""

    description = Description(
        name="peer",
        order=40,
        tables=("instances", "peers", "secrets"),
        target="speaker",
        summary="peers: session settings, password, families, the route set that they get",
    )

    def __init__(
        self, db: Database, intent: IntentTables, secrets: Table[Secret], speaker: SpeakerPort
    ) -> None:
        self._intent = intent
        self._secrets = secrets
        self._speaker = speaker
        self._instance_changes = intent.instances.changes(db)
        self._peer_changes = intent.peers.changes(db)
        self._secret_changes = secrets.changes(db)

    def changes(self, snapshot: Snapshot) -> dict[ObjectKey, Parts]:
        """Peers that changed, those of changed instances, and those whose Secret changed."""
        peers = self._intent.peers
        found: dict[ObjectKey, Parts] = {
            (change.row.instance, change.row.name): None
            for change in self._peer_changes.next(snapshot)
        }
        for instance in self._instance_changes.next(snapshot):
            for row in peers.prefix(snapshot, KEY, (instance.row.name,)):
                found[row.instance, row.name] = None
        for secret in self._secret_changes.next(snapshot):
            metadata = secret.row.metadata
            for row in peers.find(snapshot, BY_SECRET, (metadata.namespace, metadata.name)):
                found[row.instance, row.name] = None
        return found

    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        """See `Reconciler`."""
        return ((row.instance, row.name) for row in self._intent.peers.all(snapshot))

    def actual_objects(self) -> Iterable[ObjectKey]:
        """See `Reconciler`."""
        for instance in self._speaker.instance_configs():
            for name in self._speaker.peer_configs(instance):
                yield instance, name

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        """See `Reconciler`."""
        return (
            self._intent.peers.get(snapshot, key) is not None
            and self._intent.instances.get(snapshot, key[0]) is not None
        )

    def possible(self, key: ObjectKey) -> bool:
        """A peer needs its instance."""
        return self._speaker.instance_config(key[0]) is not None

    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> PeerConfig:
        """See `SingleValue`. Raises `speaker.api.InvalidConfig`."""

        def password_of(ref: PasswordRef) -> bytes | None:
            if isinstance(ref, FieldRef):
                raise TypeError(f"a password in a field ({ref}) is not supported")
            secret = self._secrets.get(snapshot, (ref.namespace, ref.name))
            if secret is None or ref.key not in secret.data:
                return None
            # A newline at the end comes from an editor and is not part of the password.
            return secret.data[ref.key].reveal().rstrip(b"\r\n")

        row = self._intent.peers.get(snapshot, key)
        instance = self._intent.instances.get(snapshot, key[0])
        if row is None or instance is None:
            raise KeyError(key)
        return peer_config(row, instance.local_asn, password_of)

    def actual_value(self, key: ObjectKey) -> PeerConfig | DynamicPeerConfig | None:
        """See `SingleValue`."""
        return self._speaker.peer_config(*key)

    def set_value(self, key: ObjectKey, value: PeerConfig) -> None:
        """See `SingleValue`."""
        self._speaker.set_peer(key[0], value)

    def delete(self, key: ObjectKey) -> None:
        """See `Reconciler`."""
        self._speaker.remove_peer(*key)
