"""The tables of the neutral intent, and the reconcile status of each of its objects."""

from __future__ import annotations

from reconcilers.model import (
    AdvertiseLimit,
    Condition,
    Generated,
    Instance,
    LearnedLimit,
    NextHops,
    ObjectAnnotations,
    ObjectRef,
    Peer,
    Problem,
    ReconcileStatus,
    Route,
    SessionAddress,
    UnsentRoutes,
)
from statedb import Database, Index, Key, Table

KEY = "key"
BY_OBJECT = "object"
"""Routes by (route set, object that caused it)."""
BY_ROUTE_SET = "by-route-set"
"""Peers by (route set that they get, instance)."""
BY_PASSWORD = "by-password"  # noqa: S105  the name of an index
"""Peers by (kind, namespace, name) of the object with their password."""


def object_id(ref: ObjectRef) -> str:
    """Return the key of an object in indexes."""
    return f"{ref.kind}/{ref.namespace}/{ref.name}"


def _route_objects(route: Route) -> tuple[Key, ...]:
    objects = dict.fromkeys(c.origin.object for c in route.contributions)
    return tuple((route.route_set, object_id(ref)) for ref in objects)


def _peer_route_sets(peer: Peer) -> tuple[Key, ...]:
    return () if peer.route_set is None else ((peer.route_set, peer.instance),)


def _peer_passwords(peer: Peer) -> tuple[Key, ...]:
    if peer.password is None:
        return ()
    owner = peer.password.owner
    return ((owner.kind, owner.namespace, owner.name),)


def _problem_key(row: Problem) -> Key:
    return (" ".join(object_id(ref) for ref in row.objects), row.field, row.message)


class IntentTables:
    """The tables of the neutral intent; the rows of all dialects share them."""

    def __init__(self, db: Database) -> None:
        self.instances: Table[Instance] = db.table("instances", Index(KEY, lambda row: row.name))
        self.peers: Table[Peer] = db.table(
            "peers",
            Index(KEY, lambda row: (row.instance, row.name)),
            [Index(BY_ROUTE_SET, keys=_peer_route_sets), Index(BY_PASSWORD, keys=_peer_passwords)],
        )
        self.session_addresses: Table[SessionAddress] = db.table(
            "session_addresses", Index(KEY, lambda row: (row.instance, row.peer))
        )
        """Of the peers that are configured. Empty without a speaker."""
        self.unsent_routes: Table[UnsentRoutes] = db.table(
            "unsent-routes", Index(KEY, lambda row: (row.instance, row.peer, row.family))
        )
        """Of sessions that are Established. Empty without a speaker."""
        self.learned_limits: Table[LearnedLimit] = db.table(
            "learned-limits", Index(KEY, lambda row: (row.instance, row.peer, row.family))
        )
        """Of the peers that are configured. Empty without a speaker."""
        self.advertise_limits: Table[AdvertiseLimit] = db.table(
            "advertise-limits", Index(KEY, lambda row: (row.instance, row.peer, row.family))
        )
        self.next_hops: Table[NextHops] = db.table(
            "next_hops", Index(KEY, lambda row: (row.instance, row.peer))
        )
        """Of the peers that are configured. Empty without a speaker."""
        self.routes: Table[Route] = db.table(
            "routes",
            Index(KEY, lambda row: (row.route_set, row.family, row.nlri)),
            [Index(BY_OBJECT, keys=_route_objects)],
        )
        self.conflicting_routes: Table[Route] = db.table(
            "conflicting-routes",
            Index(KEY, lambda row: (row.route_set, row.family, row.nlri)),
            [Index(BY_OBJECT, keys=_route_objects)],
        )
        """Prefixes whose contributions contradict each other: not advertised, each with a problem."""
        self.conditions: Table[Condition] = db.table(
            "conditions", Index(KEY, lambda row: (object_id(row.object), row.type))
        )
        self.problems: Table[Problem] = db.table("problems", Index(KEY, _problem_key))
        self.generated: Table[Generated] = db.table(
            "generated",
            Index(KEY, lambda row: (row.object.kind, row.object.namespace, row.object.name)),
        )
        self.annotations: Table[ObjectAnnotations] = db.table(
            "annotations", Index(KEY, lambda row: (object_id(row.object), row.by_operator))
        )
        """What dialects set on objects of other writers."""
        self.reconcile_statuses: Table[ReconcileStatus] = db.table(
            "reconcile_statuses", Index(KEY, lambda row: (row.reconciler, row.object))
        )
