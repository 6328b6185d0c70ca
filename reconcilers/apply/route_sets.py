"""Reconciles route sets: filled before a peer gets them, kept until the last peer has left them.

The parts of a route set are its routes. A change of a set is one call of the speaker, so that prefixes
with equal attributes share an UPDATE (RFC 4271 section 4.3).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import TypeAlias

from reconcilers.apply.to_speaker import route_attributes
from reconcilers.intent_tables import BY_ROUTE_SET, KEY, IntentTables
from reconcilers.sliced_work import Slices
from reconcilers.target.reconciler import Description, ObjectKey, Parts, Reconciler, State
from speaker.api import RouteAttributes, SpeakerPort
from speaker.nlri import Family, prefix_to_text
from statedb import Database, Snapshot

RouteKey: TypeAlias = tuple[Family, bytes]
"""A route within its set: the family, and the prefix as wire bytes."""
Changed: TypeAlias = tuple[ObjectKey, AbstractSet[RouteKey]]
"""A set, with its changed routes."""


class RouteSets(Reconciler):
    """Objects are ``(instance, route set)``, parts are `RouteKey`, values `RouteAttributes`."""

    description = Description(
        name="route-set",
        order=20,
        tables=("instances", "peers", "routes"),
        target="speaker",
        summary="route sets: the prefixes and attributes that peers are advertised",
    )

    def __init__(self, db: Database, intent: IntentTables, speaker: SpeakerPort) -> None:
        self._intent = intent
        self._speaker = speaker
        self._instance_changes = intent.instances.changes(db)
        self._instances: set[str] = set()
        """The instances of the last changes."""
        self._peer_changes = intent.peers.changes(db)
        self._route_changes = intent.routes.changes(db)
        # From here on only changes: the first listing is of whole sets.
        self._route_changes.skip(db.snapshot())

    def changes(self, snapshot: Snapshot) -> Slices[dict[ObjectKey, Parts]]:
        """Return changed routes by route set; route sets that changed peers or instances need."""
        changed: dict[ObjectKey, Parts] = dict((yield from self._changed_routes(snapshot)))
        touched: set[str] = set()
        for key in self._needed_sets(snapshot, touched):
            changed.setdefault(key, ())
        for instance in touched:
            for route_set in self._speaker.route_sets(instance):
                if not self._has_peer(snapshot, instance, route_set):
                    changed.setdefault((instance, route_set), ())
        return changed

    def _changed_routes(
        self, snapshot: Snapshot
    ) -> Slices[list[tuple[ObjectKey, AbstractSet[RouteKey]]]]:
        """Return the sets with changed routes in each instance with a peer that gets them, or got them.

        The routes of a set that has to go are not compared; their number is that of the work.
        """
        changed: dict[str, set[RouteKey]] = {}
        for number, some in enumerate(self._route_changes.slices(snapshot)):
            if number:
                yield
            for change in some:
                row = change.row
                changed.setdefault(row.route_set, set()).add((row.family, row.nlri))
        if not changed:
            return []
        entries: list[Changed] = []
        instances = [row.name for row in self._intent.instances.all(snapshot)]
        for route_set, parts in changed.items():
            entries += [
                ((instance, route_set), parts)
                for instance in instances
                if self._has_peer(snapshot, instance, route_set)
                or route_set in self._speaker.route_sets(instance)
            ]
        return entries

    def _needed_sets(self, snapshot: Snapshot, touched: set[str]) -> Iterator[ObjectKey]:
        """Yield the sets of changed peers, and of instances that come or go.

        Adds these instances to ``touched``.
        """
        for change in self._peer_changes.next(snapshot):
            touched.add(change.row.instance)
            if change.row.route_set is not None:
                yield change.row.instance, change.row.route_set
        for changed in self._instance_changes.next(snapshot):
            instance = changed.row.name
            if instance in self._instances and not changed.deleted:
                continue
            (self._instances.discard if changed.deleted else self._instances.add)(instance)
            touched.add(instance)
            for row in self._intent.peers.prefix(snapshot, KEY, (instance,)):
                if row.route_set is not None:
                    yield instance, row.route_set

    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        """Return the route sets that peers of the intent shall get, by instance."""
        return {
            (row.instance, row.route_set): None
            for row in self._intent.peers.all(snapshot)
            if row.route_set is not None
        }

    def actual_objects(self) -> Iterable[ObjectKey]:
        """Return the route sets that the speaker has, by instance."""
        for instance in self._speaker.instance_configs():
            for route_set in self._speaker.route_sets(instance):
                yield instance, route_set

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        """True if a peer of the instance shall get a route set."""
        instance, route_set = key
        return (
            self._has_peer(snapshot, instance, route_set)
            and self._intent.instances.get(snapshot, instance) is not None
        )

    def possible(self, key: ObjectKey) -> bool:
        """True if the speaker has the instance of a route set."""
        return self._speaker.instance_config(key[0]) is not None

    def still_used(self, keys: Collection[ObjectKey]) -> Collection[ObjectKey]:
        """Return the route sets that peers of the speaker still get: each would be withdrawn."""
        used: set[ObjectKey] = set()
        for instance in {instance for instance, _ in keys}:
            for config in self._speaker.peer_configs(instance).values():
                if config.route_set is not None:
                    used.add((instance, config.route_set))
        return used.intersection(keys)

    def desired(
        self, snapshot: Snapshot, key: ObjectKey, parts: Collection[RouteKey] | None
    ) -> dict[RouteKey, RouteAttributes]:
        """Return the routes of a route set of the intent, with the attributes to advertise."""
        routes = self._intent.routes
        route_set = key[1]
        if parts is None:
            return {
                (row.family, row.nlri): route_attributes(row.attributes)
                for row in routes.prefix(snapshot, KEY, (route_set,))
            }
        wanted: dict[RouteKey, RouteAttributes] = {}
        for part in parts:
            row = routes.get(snapshot, (route_set, *part))
            if row is not None:
                wanted[part] = route_attributes(row.attributes)
        return wanted

    def actual(
        self, key: ObjectKey, parts: Collection[RouteKey] | None
    ) -> dict[RouteKey, RouteAttributes] | None:
        """Return the routes of a route set of the speaker; None without the set."""
        queried: dict[Family, Collection[bytes]]
        if parts is None:
            prefixes = self._speaker.route_set_prefixes(*key)
            if prefixes is None:
                return None
            queried = dict(prefixes)
        else:
            by_family: dict[Family, list[bytes]] = {}
            for family, nlri in parts:
                by_family.setdefault(family, []).append(nlri)
            queried = dict(by_family)
        instance, route_set = key
        held = self._speaker.routes_of_set(instance, route_set, queried)
        if held is None:
            return None
        return {
            (family, nlri): attributes
            for family, rows in held.items()
            for nlri, attributes in rows.items()
            if attributes is not None
        }

    def pieces(
        self, snapshot: Snapshot, key: ObjectKey, size: int
    ) -> Iterator[Collection[RouteKey]]:
        """Iterate over the routes of a route set: the desired first, then others of the speaker."""
        routes = self._intent.routes
        route_set = key[1]
        held = self._speaker.route_set_prefixes(*key) or {}
        rows = routes.prefix(snapshot, KEY, (route_set,))
        # The first piece is there for an empty set, too: the set itself may be missing.
        piece = [(row.family, row.nlri) for row in islice(rows, size)]
        yield piece
        while piece := [(row.family, row.nlri) for row in islice(rows, size)]:
            yield piece
        for family, prefixes in held.items():
            for start in range(0, len(prefixes), size):
                yield [
                    (family, nlri)
                    for nlri in prefixes[start : start + size]
                    if routes.get(snapshot, (route_set, family, nlri)) is None
                ]

    def update(self, key: ObjectKey, changes: State) -> None:
        """Update a route set of the speaker by one call, whatever the number of routes."""
        by_family: dict[Family, dict[bytes, RouteAttributes | None]] = {}
        for (family, nlri), attributes in changes.items():
            by_family.setdefault(family, {})[nlri] = attributes
        instance, route_set = key
        self._speaker.update_routes(instance, route_set, by_family)

    def delete(self, key: ObjectKey) -> None:
        """Remove a route set from the speaker."""
        self._speaker.remove_route_set(*key)

    def text(self, part: RouteKey) -> str:
        """Return the prefix of a route of a route set as text."""
        return prefix_to_text(*part)

    def _has_peer(self, snapshot: Snapshot, instance: str, route_set: str) -> bool:
        peers = self._intent.peers.find(snapshot, BY_ROUTE_SET, (route_set, instance))
        return next(peers, None) is not None
