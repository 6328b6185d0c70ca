"""Reconciles BGP instances: the first to be created, the last to be deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from reconcilers.apply.to_speaker import instance_config
from reconcilers.sliced_work import Slices, at_once
from reconcilers.tables import IntentTables
from reconcilers.target.reconciler import Description, ObjectKey, Parts
from reconcilers.target.single_value import SingleValue
from speaker.api import InstanceConfig, SpeakerPort
from statedb import Database, Snapshot


class Instances(SingleValue):
    """Objects are ``(instance,)``, values `InstanceConfig`."""

    description = Description(
        name="instance",
        order=10,
        tables=("instances",),
        target="speaker",
        summary="BGP instances: AS, router ID, VRF, listening port",
    )

    def __init__(self, db: Database, intent: IntentTables, speaker: SpeakerPort) -> None:
        self._instances = intent.instances
        self._speaker = speaker
        self._changes = intent.instances.changes(db)

    def changes(self, snapshot: Snapshot) -> Slices[dict[ObjectKey, Parts]]:
        """See `Reconciler`."""
        return at_once({(change.row.name,): None for change in self._changes.next(snapshot)})

    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        """See `Reconciler`."""
        return ((row.name,) for row in self._instances.all(snapshot))

    def actual_objects(self) -> Iterable[ObjectKey]:
        """See `Reconciler`."""
        return ((name,) for name in self._speaker.instance_configs())

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        """See `Reconciler`."""
        return self._instances.get(snapshot, key) is not None

    def still_used(self, keys: Collection[ObjectKey]) -> Collection[ObjectKey]:
        """An instance is deleted after its peers and its route sets."""
        speaker = self._speaker
        return [key for key in keys if speaker.peer_configs(*key) or speaker.route_sets(*key)]

    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> InstanceConfig:
        """See `SingleValue`. Raises `speaker.api.InvalidConfig`."""
        row = self._instances.get(snapshot, key)
        if row is None:
            raise KeyError(key)
        return instance_config(row)

    def actual_value(self, key: ObjectKey) -> InstanceConfig | None:
        """See `SingleValue`."""
        return self._speaker.instance_config(*key)

    def set_value(self, key: ObjectKey, value: InstanceConfig) -> None:
        """Another AS or router ID makes another router; it keeps its peers and route sets."""
        del key
        self._speaker.set_instance(value)

    def delete(self, key: ObjectKey) -> None:
        """See `Reconciler`."""
        self._speaker.remove_instance(*key)
