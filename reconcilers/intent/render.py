"""Renders the intent of a node as one document. The JSON is a stable interface (docs/render.md).

Unset values are null, lists are sorted: peers by name, prefixes in address order, IPv4 first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconcilers.intent_tables import KEY, IntentTables, Json
from reconcilers.model import (
    Attributes,
    Instance,
    Peer,
    PrefixRule,
    Route,
)
from resources.tables import Tables
from speaker.api import BfdProfile, Confederation
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family, prefix_to_text, prefix_to_wire
from statedb import Snapshot

DEFAULT_VRF: Final = "default"


def community_text(value: int) -> str:
    """Render a standard community as two numbers, also a well-known one."""
    return f"{value >> 16}:{value & 0xFFFF}"


def document(snapshot: Snapshot, node: str, resources: Tables, intent: IntentTables) -> Json:
    """Render the intent of a node as one document."""
    instances = sorted(intent.instances.all(snapshot), key=lambda row: row.name)
    by_name = {(row.dialect, row.configured_name or row.name): row for row in instances}
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
                "imports": sorted(other.vrf or DEFAULT_VRF for other in _imported(row, by_name)),
                "originate": _originated(snapshot, intent, row, _imported(row, by_name)),
                "peers": [
                    _peer(peer, _routes(snapshot, intent, peer.route_set, routes))
                    for peer in sorted(
                        intent.peers.prefix(snapshot, KEY, (row.name,)), key=lambda p: p.name
                    )
                ],
            }
            for row in instances
        ],
        **intent.rendered(snapshot),
        "problems": problems(snapshot, resources, intent),
    }


def _imported(row: Instance, by_name: Mapping[tuple[str, str], Instance]) -> list[Instance]:
    """Return the instances whose routes an instance takes."""
    imported_rows = (by_name.get((row.dialect, imported.instance)) for imported in row.imports)
    return [other for other in imported_rows if other is not None]


def _originated(
    snapshot: Snapshot, intent: IntentTables, row: Instance, imported: list[Instance]
) -> list[str]:
    """Return the prefixes that an instance originates: its own, without imported routes."""
    originated = {prefix_to_wire(text) for text in row.originates}
    foreign = {prefix_to_wire(text) for other in imported for text in other.originates}
    sets = {peer.route_set for peer in intent.peers.prefix(snapshot, KEY, (row.name,))}
    for name in sets:
        routes = () if name is None else intent.routes.prefix(snapshot, KEY, (name,))
        originated |= {(route.family, route.nlri) for route in routes} - foreign
    return [prefix_to_text(family, nlri) for family, nlri in sorted(originated, key=_prefix_order)]


def _confederation(confederation: Confederation | None) -> Json | None:
    if confederation is None:
        return None
    return {"identifier": confederation.identifier, "members": sorted(confederation.members)}


def _routes(
    snapshot: Snapshot, intent: IntentTables, route_set: str | None, rendered: dict[str, list[Json]]
) -> list[Json]:
    if route_set is None:
        return []
    if route_set not in rendered:
        rendered[route_set] = route_items(snapshot, intent, route_set)
    return rendered[route_set]


def route_items(snapshot: Snapshot, intent: IntentTables, route_set: str) -> list[Json]:
    """Render the routes of a route set, in address order."""
    rows = sorted(intent.routes.prefix(snapshot, KEY, (route_set,)), key=_address_order)
    return [route_item(row) for row in rows]


def _address_order(row: Route) -> tuple[int, bytes, int]:
    return _prefix_order((row.family, row.nlri))


def _prefix_order(prefix: tuple[Family, bytes]) -> tuple[int, bytes, int]:
    family, nlri = prefix
    return (family.afi, nlri[1:].ljust(16, b"\0"), nlri[0])


def route_item(row: Route) -> Json:
    """Render one route, as JSON."""
    attributes: Attributes = row.attributes
    origins = sorted({(c.origin.object, c.origin.type) for c in row.contributions})
    return {
        "prefix": prefix_to_text(row.family, row.nlri),
        "communities": [community_text(value) for value in attributes.communities],
        "largeCommunities": [
            ":".join(str(n) for n in value) for value in attributes.large_communities
        ],
        "localPreference": attributes.local_preference,
        "med": attributes.med,
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


def _rules(rules: tuple[PrefixRule, ...]) -> list[Json]:
    # Two objects may have one rule.
    known = {rule.sort_key: rule for rule in rules}
    return [
        {"prefix": rule.prefix, "ge": rule.ge, "le": rule.le} for _, rule in sorted(known.items())
    ]


def _bfd(profile: BfdProfile | None) -> Json | None:
    if profile is None:
        return None
    return {
        "profile": profile.name or None,
        "receiveInterval": profile.receive_interval,
        "transmitInterval": profile.transmit_interval,
        "detectMultiplier": profile.detect_multiplier,
        "echoInterval": profile.echo_interval,
        "echoMode": profile.echo_mode,
        "passiveMode": profile.passive,
        "minimumTTL": profile.minimum_ttl,
        "multihop": profile.multihop,
        "strict": profile.strict,
    }


def _with_next_hops(routes: list[Json], hops: Mapping[Family, str]) -> list[Json]:
    """Return the routes with the next hops of a peer; a next hop of a route's own stays."""
    by_version = {family == IPV6_UNICAST: hop for family, hop in hops.items()}
    return [
        {**route, "nextHop": route["nextHop"] or by_version.get(":" in route["prefix"])}
        for route in routes
    ]


def _peer(peer: Peer, routes: list[Json]) -> Json:
    families = frozenset(str(family) for family in peer.families)
    restart = peer.graceful_restart
    hops = {hop.family: hop.address for hop in peer.next_hops if hop.configured}
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
        "bfd": _bfd(peer.bfd),
        "families": sorted(families),
        "nextHopIPv4": hops.get(IPV4_UNICAST),
        "nextHopIPv6": hops.get(IPV6_UNICAST),
        "advertise": _with_next_hops(routes, hops) if hops else routes,
        "neverAccept": _rules(peer.reject),
        "allowASInOrigin": peer.allowas_in_origin,
        "allowASIn": peer.allowas_in,
        "accept": "all" if peer.accept is None else _rules(peer.accept),
        "lastChoice": None if shutdown is None else {"prepend": shutdown.prepend},
    }


def problems(snapshot: Snapshot, resources: Tables, intent: IntentTables) -> list[Json]:
    """Render all problems: of objects that cannot be read, and of the intent."""
    items = [
        {
            "objects": [str(row.object)] if row.object is not None else [],
            "field": row.field,
            "message": f"{row.message} ({row.where})",
            "category": "unsupported" if row.ignored else "invalid",
            "count": 1,
            "ofTenant": resources.is_of_tenant(row),
        }
        for row in resources.source_problems.all(snapshot)
    ]
    items += IntentTables.problems.rendered(intent.problems.all(snapshot))
    return sorted(items, key=lambda p: (p["objects"], p["field"], p["message"]))
