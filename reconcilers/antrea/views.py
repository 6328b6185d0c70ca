"""The views of Antrea's agent: ``/bgppolicy``, ``/bgppeers`` and ``/bgproutes``, with its answers.

Names, order, statuses and texts are as in Antrea's ``pkg/agent/apiserver/handlers``. A route with
two owners is two items here; Antrea shows one of them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from reconcilers.antrea.route_sets import ROUTE_TYPES, route_sets
from reconcilers.dialect import ApiPath, RefusedError, ViewContext
from reconcilers.intent_tables import KEY
from reconcilers.model import Instance, ObjectRef, Peer, Route
from resources.antrea import BGPPolicy
from resources.antrea.kinds import BGP_POLICY
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family, prefix_to_text

POLICY, PEERS, ROUTES = "/bgppolicy", "/bgppeers", "/bgproutes"
IPV4_ONLY, IPV6_ONLY, TYPE = "ipv4-only", "ipv6-only", "type"
NO_POLICY: Final = "there is no effective bgp policy applied to the Node"
INVALID_QUERY: Final = "invalid query"
GROUP: Final = 200
"""Routes that are read and sent between two turns of the sessions."""


class PolicyView(msgspec.Struct, frozen=True, omit_defaults=True):
    """The effective policy."""

    name: str = ""
    router_id: str = msgspec.field(default="", name="routerID")
    local_asn: int = msgspec.field(default=0, name="localASN")
    listen_port: int = msgspec.field(default=0, name="listenPort")
    confederation_identifier: int = msgspec.field(default=0, name="confederationIdentifier")
    member_asns: tuple[int, ...] = msgspec.field(default=(), name="memberASNs")


class PeerView(msgspec.Struct, frozen=True, omit_defaults=True):
    """One session; ``peer`` is address and port."""

    peer: str = ""
    asn: int = 0
    state: str = ""
    bfd: str = ""
    """The state of the BFD session, as antrea#8360 proposes it; empty without one."""


class RouteView(msgspec.Struct, frozen=True, omit_defaults=True):
    """One route with one of its owners."""

    route: str = ""
    type: str = ""
    object_ref: str = msgspec.field(default="", name="k8sObjRef")


def policy(context: ViewContext, query: Mapping[str, str]) -> PolicyView:
    """Return the view ``/bgppolicy`` of Antrea's agent: the policy. Raises `RefusedError`."""
    del query
    row = _instance(context)
    confederation = row.confederation
    return PolicyView(
        name=_name(row),
        router_id=row.router_id,
        local_asn=row.local_asn,
        listen_port=row.listen_port or 0,
        confederation_identifier=confederation.identifier if confederation is not None else 0,
        member_asns=tuple(sorted(confederation.members)) if confederation is not None else (),
    )


def peers(context: ViewContext, query: Mapping[str, str]) -> list[PeerView] | None:
    """Return the view ``/bgppeers`` of Antrea's agent: IPv4 first. Raises `RefusedError`."""
    families = _families(query)
    row = _instance(context)
    states = {
        session.name: session.state for session in context.sessions if session.instance == row.name
    }
    sessions = context.intent.bfd_sessions.prefix(context.snapshot, KEY, (row.name,))
    bfd = {session.peer: session.state for session in sessions}
    neighbors = [
        peer
        for peer in context.intent.peers.prefix(context.snapshot, KEY, (row.name,))
        if peer.address is not None and not families.isdisjoint(peer.families)
    ]
    return [
        PeerView(
            _endpoint(peer),
            peer.peer_asn if isinstance(peer.peer_asn, int) else 0,
            states.get(peer.name, "Unknown"),
            bfd.get(peer.name, ""),
        )
        for peer in sorted(neighbors, key=_peer_order)
    ] or None


def routes(context: ViewContext, query: Mapping[str, str]) -> Iterator[list[RouteView]]:
    """Return the view ``/bgproutes`` of Antrea's agent, in groups. Raises `RefusedError`."""
    families = _families(query)
    name = _name(_instance(context))
    wanted = query.get(TYPE)
    types = [name for name in sorted(ROUTE_TYPES) if wanted in (None, "", name)]
    row = context.tables.of(BGP_POLICY).get(context.snapshot, ("", name))
    sets = {family: _route_sets(context, family, row) for family in sorted(families)}
    return _routes(context, sets, types)


def _routes(
    context: ViewContext, sets: Mapping[Family, set[str]], types: list[str]
) -> Iterator[list[RouteView]]:
    for family, names in sets.items():
        rows = [
            row
            for name in names
            for row in context.intent.routes.prefix(context.snapshot, KEY, (name, family))
        ]
        # The first octet of a prefix is its length.
        rows.sort(key=lambda row: row.nlri)
        for type_ in types:
            for start in range(0, len(rows), GROUP):
                group = list(_of_type(rows[start : start + GROUP], type_))
                if group:
                    yield group


def _of_type(rows: Iterable[Route], type_: str) -> Iterator[RouteView]:
    for row in rows:
        for ref in dict.fromkeys(o.object for o in row.origins if o.type == type_):
            yield RouteView(prefix_to_text(row.family, row.nlri), type_, _object_ref(ref))


def _route_sets(context: ViewContext, family: Family, row: BGPPolicy | None) -> set[str]:
    """Return the set of a family: that of its peers, or without a peer that of the policy."""
    names = {
        peer.route_set
        for peer in context.intent.peers.all(context.snapshot)
        if peer.dialect == context.dialect and family in peer.families
    }
    if not names and row is not None:
        return {f"{context.dialect}-{route_sets(row, (family,))[family].name}"}
    # A drained node advertises nothing.
    return {name for name in names if name is not None}


def _object_ref(ref: ObjectRef) -> str:
    if ref.kind == "Node":
        return ""
    return f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name


def _instance(context: ViewContext) -> Instance:
    for row in context.intent.instances.all(context.snapshot):
        is_policy = row.origin is not None and row.origin.kind == BGP_POLICY.name
        if row.dialect == context.dialect and is_policy:
            return row
    raise RefusedError(404, NO_POLICY)


def _name(row: Instance) -> str:
    return "" if row.origin is None else row.origin.name


def _families(query: Mapping[str, str]) -> frozenset[Family]:
    """Return the requested families; the flags have no value. Raises `RefusedError`."""
    if query.get(IPV4_ONLY) or query.get(IPV6_ONLY) or {IPV4_ONLY, IPV6_ONLY} <= query.keys():
        raise RefusedError(400, INVALID_QUERY)
    if IPV4_ONLY in query:
        return frozenset({IPV4_UNICAST})
    if IPV6_ONLY in query:
        return frozenset({IPV6_UNICAST})
    return frozenset({IPV4_UNICAST, IPV6_UNICAST})


def _endpoint(peer: Peer) -> str:
    address = peer.address or ""
    return f"[{address}]:{peer.peer_port}" if ":" in address else f"{address}:{peer.peer_port}"


def _peer_order(peer: Peer) -> tuple[Any, ...]:
    address = ipaddress.ip_address(peer.address or "::")
    return (address.version, int(address), peer.peer_port)


PATHS: Final = (ApiPath(POLICY, policy), ApiPath(PEERS, peers), ApiPath(ROUTES, routes))
