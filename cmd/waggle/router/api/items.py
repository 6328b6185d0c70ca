"""Sessions, BMP stations and routes as JSON objects of the router's API."""

from __future__ import annotations

from typing import Any

from speaker.api import CollectorStatus, PeerStatus, RouteView


def peer_object(status: PeerStatus) -> dict[str, Any]:
    """Return a session as a JSON object."""
    return {
        "name": status.name,
        "address": status.address,
        "asn": status.peer_asn,
        "type": status.peer_type,
        "state": status.state,
        "reason": status.reason,
        "likelyCause": status.likely_cause,
        "retryIn": status.retry_in,
        "since": status.since,
        "routerID": status.peer_router_id,
        "holdTime": status.hold_time,
        "keepaliveTime": status.keepalive_time,
        "capabilities": status.capabilities,
        "lastError": status.last_error,
        "flaps": status.flaps,
        "updatesReceived": status.updates_received,
        "updatesSent": status.updates_sent,
        "malformedUpdates": status.malformed_updates,
        "malformed": status.malformed or None,
        "dynamic": status.dynamic,
        "families": {
            str(family.family): {
                "negotiated": family.negotiated,
                "received": family.received,
                "accepted": family.accepted,
                "advertised": family.advertised,
                "leftOut": family.left_out,
                "note": family.note or None,
                "stale": family.stale,
            }
            for family in status.families
        },
    }


def collector_object(status: CollectorStatus) -> dict[str, Any]:
    """Return a BMP monitoring station as a JSON object."""
    return {
        "name": status.name,
        "address": status.address,
        "port": status.port,
        "connected": status.connected,
        "synchronized": status.synchronized,
        "reason": status.reason,
        "since": status.since,
        "retryIn": status.retry_in,
        "octetsSent": status.octets_sent,
        "queuedOctets": status.queued_octets,
        "connections": status.connections,
    }


def route_object(route: RouteView) -> dict[str, Any]:
    """Return a route as a JSON object."""
    return {
        "family": str(route.family),
        "prefix": route.prefix,
        "nextHop": route.next_hop,
        "asPath": route.as_path,
        "origin": route.origin,
        "med": route.med,
        "localPreference": route.local_preference,
        "communities": route.communities,
        "largeCommunities": route.large_communities,
        "peer": route.peer,
        "best": route.best,
        "reason": f"{route.reason}, kept while the peer is away" if route.kept else route.reason,
        "kept": route.kept,
        "pathID": route.path_id,
    }
