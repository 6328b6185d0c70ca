"""Renders the intent of a node as one document. The JSON is a stable interface (docs/render.md).

Unset values are null, lists are sorted: peers by name, prefixes in address order, IPv4 first.
"""

from __future__ import annotations

from typing import Any

from reconcilers.model import Attributes, Confederation, Peer, PrefixRule, Problem, Route
from reconcilers.tables import KEY, IntentTables
from resources.tables import Tables
from speaker.nlri import prefix_to_text
from statedb import Snapshot

Json = dict[str, Any]


def community_text(value: int) -> str:
    """Return a standard community as two numbers, also a well-known one."""
    return f"{value >> 16}:{value & 0xFFFF}"


def document(snapshot: Snapshot, node: str, resources: Tables, intent: IntentTables) -> Json:
    """Return the document."""
    instances = sorted(intent.instances.all(snapshot), key=lambda row: row.name)
    routes: dict[str, list[Json]] = {}
    return {
        "node": node,
        "instances": [
            {
                "name": row.name,
                "vrf": row.vrf,
                "localASN": row.local_asn,
                "routerID": row.router_id,
                "listenPort": row.listen_port,
                "confederation": _confederation(row.confederation),
                "peers": [
                    _peer(peer, _routes(snapshot, intent, peer.route_set, routes))
                    for peer in sorted(
                        intent.peers.prefix(snapshot, KEY, (row.name,)), key=lambda p: p.name
                    )
                ],
            }
            for row in instances
        ],
        "conditions": [
            {
                "kind": row.object.kind,
                "namespace": row.object.namespace or None,
                "name": row.object.name,
                "type": row.type,
                "status": "True" if row.status else "False",
                "reason": row.reason,
                "message": row.message,
            }
            for row in sorted(intent.conditions.all(snapshot), key=lambda r: (r.object, r.type))
        ],
        "generated": [
            row.content
            for row in sorted(intent.generated.all(snapshot), key=lambda row: row.object)
        ],
        "annotations": [
            {
                "kind": row.object.kind,
                "namespace": row.object.namespace or None,
                "name": row.object.name,
                "set": dict(sorted(row.annotations.items())),
            }
            for row in sorted(intent.annotations.all(snapshot), key=lambda row: row.object)
        ],
        "problems": problems(snapshot, resources, intent),
    }


def _confederation(found: Confederation | None) -> Json | None:
    if found is None:
        return None
    return {"identifier": found.identifier, "members": sorted(found.members)}


def _routes(
    snapshot: Snapshot, intent: IntentTables, route_set: str | None, rendered: dict[str, list[Json]]
) -> list[Json]:
    if route_set is None:
        return []
    if route_set not in rendered:
        rows = sorted(intent.routes.prefix(snapshot, KEY, (route_set,)), key=_address_order)
        rendered[route_set] = [_route(row) for row in rows]
    return rendered[route_set]


def _address_order(row: Route) -> tuple[int, bytes, int]:
    return (row.family.afi, row.nlri[1:].ljust(16, b"\0"), row.nlri[0])


def _route(row: Route) -> Json:
    attributes: Attributes = row.attributes
    origins = sorted({(c.origin.object, c.origin.type) for c in row.contributions})
    return {
        "prefix": prefix_to_text(row.family, row.nlri),
        "communities": [community_text(value) for value in attributes.communities],
        "largeCommunities": [
            ":".join(str(n) for n in value) for value in attributes.large_communities
        ],
        "localPreference": attributes.local_preference,
        "nextHop": attributes.next_hop,
        "origin": "incomplete" if attributes.incomplete else "igp",
        "origins": [
            {
                "kind": ref.kind,
                "namespace": ref.namespace or None,
                "name": ref.name,
                "type": type_ or None,
            }
            for ref, type_ in origins
        ],
    }


def _accept(rules: tuple[PrefixRule, ...] | None) -> str | list[Json]:
    if rules is None:
        return "all"
    # Two objects may have one rule.
    known = {rule.sort_key: rule for rule in rules}
    return [
        {"prefix": rule.prefix, "ge": rule.ge, "le": rule.le} for _, rule in sorted(known.items())
    ]


def _peer(peer: Peer, routes: list[Json]) -> Json:
    families = frozenset(str(family) for family in peer.families)
    restart = peer.graceful_restart
    bfd = peer.bfd
    shutdown = peer.graceful_shutdown
    return {
        "name": peer.name,
        "address": peer.address,
        "interface": peer.interface,
        "peerASN": 0 if isinstance(peer.peer_asn, str) else peer.peer_asn,
        "peerType": peer.peer_asn if isinstance(peer.peer_asn, str) else None,
        "peerPort": peer.peer_port,
        "localAddress": peer.local_address,
        "localASN": peer.local_asn,
        "holdTime": peer.hold_time,
        "keepaliveTime": peer.keepalive_time,
        "connectRetryTime": peer.connect_retry_time,
        "ebgpMultihop": peer.ebgp_multihop,
        "password": peer.password is not None,
        "gracefulRestart": {"restartTime": restart.restart_time} if restart else None,
        "bfd": (
            {
                "receiveInterval": bfd.receive_interval,
                "transmitInterval": bfd.transmit_interval,
                "detectMultiplier": bfd.detect_multiplier,
            }
            if bfd
            else None
        ),
        "families": sorted(families),
        "advertise": routes,
        "accept": _accept(peer.accept),
        "lastChoice": None if shutdown is None else {"prepend": shutdown.prepend},
    }


def problem_item(row: Problem) -> Json:
    """Return a problem of the intent as JSON."""
    return {
        "objects": [str(ref) for ref in row.objects],
        "field": row.field,
        "message": row.message,
    }


def problems(snapshot: Snapshot, resources: Tables, intent: IntentTables) -> list[Json]:
    """Return all problems: of objects that cannot be read, and of the intent."""
    found = [
        {
            "objects": [str(row.object)] if row.object is not None else [],
            "field": row.field,
            "message": f"{row.message} ({row.where})",
        }
        for row in resources.source_problems.all(snapshot)
    ]
    found += [problem_item(row) for row in intent.problems.all(snapshot)]
    return sorted(found, key=lambda p: (p["objects"], p["field"], p["message"]))
