"""Reconciles BGP instances: the first to be created, the last to be deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from reconcilers.apply.to_speaker import instance_config
from reconcilers.intent_tables import IntentTables
from reconcilers.sliced_work import Slices, at_once
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
        """Return the BGP instances of the intent that changed."""
        return at_once({(change.row.name,): None for change in self._changes.next(snapshot)})

    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        """Return the BGP instances of the intent, to reconcile with the speaker's."""
        return ((row.name,) for row in self._instances.all(snapshot))

    def actual_objects(self) -> Iterable[ObjectKey]:
        """Return the BGP instances of the speaker, to reconcile with the intent's."""
        return ((name,) for name in self._speaker.instance_configs())

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        """True if the intent has a BGP instance of this name."""
        return self._instances.get(snapshot, key) is not None

    def still_used(self, keys: Collection[ObjectKey]) -> Collection[ObjectKey]:
        """Return the BGP instances with peers or route sets, which are deleted before them."""
        speaker = self._speaker
        return [key for key in keys if speaker.peer_configs(*key) or speaker.route_sets(*key)]

    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> InstanceConfig:
        """Return the configuration of a BGP instance of the intent. Raises `InvalidConfig`."""
        row = self._instances.get(snapshot, key)
        if row is None:
            raise KeyError(key)
        return instance_config(row)

    def actual_value(self, key: ObjectKey) -> InstanceConfig | None:
        """Return the configuration of a BGP instance of the speaker; None without it."""
        return self._speaker.instance_config(*key)

    def set_value(self, key: ObjectKey, value: InstanceConfig) -> None:
        """Create or change a BGP instance: another AS or router ID keeps its peers and route sets."""
        del key
        self._speaker.set_instance(value)

    def delete(self, key: ObjectKey) -> None:
        """Remove a BGP instance from the speaker."""
        self._speaker.remove_instance(*key)
