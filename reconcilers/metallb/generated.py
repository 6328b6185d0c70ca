"""Objects that MetalLB's speaker would write for a node: FRRConfiguration, ServiceBGPStatuses. Pure.

For people, and never read back: the FRRConfiguration is not stored; `node_objects` has the
ServiceBGPStatuses that an agent stores. Source: MetalLB internal/bgp/frrk8s/frrk8s.go and
internal/k8s/controllers/servicebgpstatus_controller.go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from reconcilers.dialect import NodeContext, Rendering
from reconcilers.dialect.join import united
from reconcilers.frrk8s.one_object import SECRETS_NAMESPACE
from reconcilers.frrk8s.options import Frrk8sClusterOptions
from reconcilers.intent_tables import BY_OBJECT, KEY, IntentTables, object_id
from reconcilers.metallb.objects import Objects
from reconcilers.metallb.translation import neighbor_of, profile_of
from reconcilers.model import Attributes, Contribution, ObjectRef, Route
from resources.empty_parts import without_empty
from resources.frrk8s.frrconfiguration import BgpConfig, FRRConfigurationSpec, Router
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.frrk8s.neighbor import (
    Advertise,
    AllowedOut,
    CommunityPrefixes,
    LocalPrefPrefixes,
    Neighbor,
    SecretReference,
)
from resources.label_selectors import LabelSelector
from resources.metallb.bgppeer import BGPPeer, vrf_of
from resources.metallb.kinds import BGP_ADVERTISEMENT, BGP_PEER, SERVICE_BGP_STATUS
from resources.metallb.status import NAMESPACE_LABEL, NODE_LABEL, SERVICE_LABEL
from resources.secret_value import encode_revealed
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family, prefix_to_text
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.metallb.dialect import MetalLBDialect

HOSTNAME: Final = "kubernetes.io/hostname"

Json = dict[str, Any]


class PeerRoutes(NamedTuple):
    """The routes of MetalLB's objects for one BGPPeer: attributes and Services by prefix."""

    routes: Mapping[str, Attributes]
    services: Mapping[str, frozenset[ObjectRef]]


def peer_routes(snapshot: Snapshot, intent: IntentTables) -> dict[str, PeerRoutes]:
    """Return the routes of each BGPPeer with a session, for generated objects, by its name."""
    routes_of: dict[str, PeerRoutes] = {}
    for peer in intent.peers.all(snapshot):
        names = [ref.name for ref in peer.origins if ref.kind == BGP_PEER.name]
        if not names or peer.route_set is None:
            continue
        routes: dict[str, Attributes] = {}
        services: dict[str, frozenset[ObjectRef]] = {}
        for row in intent.routes.prefix(snapshot, KEY, (peer.route_set,)):
            if own := _own(row):
                prefix = prefix_to_text(row.family, row.nlri)
                routes[prefix] = united(routes.attributes for routes in own)
                objects = (routes.origin.object for routes in own)
                services[prefix] = frozenset(ref for ref in objects if ref.kind == "Service")
        routes_of.update((name, PeerRoutes(routes, services)) for name in names)
    return routes_of


def _own(row: Route) -> list[Contribution]:
    """Return what MetalLB's objects contribute to a route."""
    return [c for c in row.contributions if c.origin.rule.kind == BGP_ADVERTISEMENT.name]


def peers_of_service(
    snapshot: Snapshot, intent: IntentTables, service: ObjectRef
) -> tuple[str, ...]:
    """Return the names of BGPPeers in the generated ServiceBGPStatus of a Service, sorted.

    As by MetalLB they may be advertised for another Service that has the address, too. A peer whose
    session is up and cannot carry a family is not named for its prefixes. The cost grows with the peers
    and the Service's prefixes, and not with the routes.
    """
    names = _names_by_route_set(snapshot, intent)
    prefixes = {
        (row.family, row.nlri)
        for route_set in names
        for row in intent.routes.find(snapshot, BY_OBJECT, (route_set, object_id(service)))
        if any(route.origin.object == service for route in _own(row))
    }
    advertised_to: set[str] = set()
    for route_set, by_family in names.items():
        for prefix in prefixes:
            peers = by_family[prefix[0]]
            if not peers <= advertised_to:
                row = intent.routes.get(snapshot, (route_set, *prefix))
                if row is not None and _own(row):
                    advertised_to |= peers
    return tuple(sorted(advertised_to))


def _names_by_route_set(
    snapshot: Snapshot, intent: IntentTables
) -> dict[str, dict[Family, set[str]]]:
    """Return the names of the BGPPeers with each route set, by the families that they can be sent."""
    unsent = {
        (row.instance, row.peer, row.family)
        for row in intent.unsent_routes.all(snapshot)
        if row.all_routes
    }
    names_of: dict[str, dict[Family, set[str]]] = {}
    for peer in intent.peers.all(snapshot):
        of_peer = [ref.name for ref in peer.origins if ref.kind == BGP_PEER.name]
        if peer.route_set is None or not of_peer:
            continue
        by_family = names_of.setdefault(peer.route_set, {IPV4_UNICAST: set(), IPV6_UNICAST: set()})
        for family, names in by_family.items():
            if (peer.instance, peer.name, family) not in unsent:
                names.update(of_peer)
    return names_of


def service_statuses(node: str, namespace: str, routes: Mapping[str, PeerRoutes]) -> Iterator[Json]:
    """Yield the generated ServiceBGPStatus of each Service that the node advertises."""
    peers: dict[str, set[str]] = defaultdict(set)
    prefixes: dict[ObjectRef, set[str]] = defaultdict(set)
    for name, of_peer in routes.items():
        for prefix, services in of_peer.services.items():
            peers[prefix].add(name)
            for service in services:
                prefixes[service].add(prefix)
    for service in sorted(prefixes):
        advertised_to = set[str]().union(*(peers[prefix] for prefix in prefixes[service]))
        yield service_status(node, namespace, service, advertised_to)


def service_status(node: str, namespace: str, service: ObjectRef, peers: Iterable[str]) -> Json:
    """Return the generated ServiceBGPStatus of one Service, as MetalLB's speaker would write it."""
    return {
        "apiVersion": SERVICE_BGP_STATUS.api_versions[0],
        "kind": SERVICE_BGP_STATUS.name,
        "metadata": {
            "generateName": "bgp-",
            "namespace": namespace,
            "labels": {
                NODE_LABEL: node,
                SERVICE_LABEL: service.name,
                NAMESPACE_LABEL: service.namespace,
            },
        },
        "status": {
            "node": node,
            "serviceName": service.name,
            "serviceNamespace": service.namespace,
            "peers": sorted(set(peers)),
        },
    }


def configuration_name(node: str) -> str:
    """Return the name of the generated FRRConfiguration: as MetalLB's speaker writes for a node."""
    return f"metallb-{node}"


def configuration(
    node: str, namespace: str, objects: Objects, routes: Mapping[str, PeerRoutes]
) -> Json:
    """Return the generated FRRConfiguration ``metallb-NODE``; ``namespace`` is that of FRR-k8s.

    It has a password where a BGPPeer has one in the object; a Secret is referred to.
    """
    groups: dict[tuple[str, int, str], list[BGPPeer]] = defaultdict(list)
    for peer in objects.peers:
        groups[vrf_of(peer), peer.spec.my_asn, peer.spec.router_id].append(peer)
    nothing = PeerRoutes({}, {})
    routers = []
    for vrf, asn, router_id in sorted(groups):
        members = sorted(groups[vrf, asn, router_id], key=_session_name)
        of_members = [routes.get(peer.metadata.name, nothing) for peer in members]
        prefixes = {prefix for of_member in of_members for prefix in of_member.routes}
        neighbors = map(_neighbor, members, of_members)
        routers.append(
            Router(
                asn=asn,
                id=router_id,
                vrf=vrf,
                prefixes=tuple(sorted(prefixes)),
                neighbors=tuple(neighbors),
            )
        )
    spec = FRRConfigurationSpec(
        bgp=BgpConfig(
            routers=tuple(routers), bfd_profiles=tuple(map(profile_of, objects.profiles))
        ),
        node_selector=LabelSelector(match_labels={HOSTNAME: node}),
    )
    metadata: Json = {"name": configuration_name(node), "namespace": namespace}
    of_secrets = {p.metadata.namespace for p in objects.peers if p.spec.password_secret.name}
    if of_secrets - {namespace}:
        metadata["annotations"] = {SECRETS_NAMESPACE: of_secrets.pop()}
    return {
        "apiVersion": FRR_CONFIGURATION.api_versions[0],
        "kind": FRR_CONFIGURATION.name,
        "metadata": metadata,
        "spec": without_empty(msgspec.to_builtins(spec, enc_hook=encode_revealed)),
    }


def _session_name(peer: BGPPeer) -> tuple[str, str, str]:
    """Return MetalLB's order of neighbours: remote AS, address or interface, local AS."""
    spec = peer.spec
    return (
        str(spec.peer_asn or spec.dynamic_asn),
        spec.peer_address or spec.interface,
        str(spec.local_asn or ""),
    )


def _neighbor(peer: BGPPeer, given: PeerRoutes) -> Neighbor:
    neighbor = neighbor_of(peer)
    if peer.spec.password_secret.name:
        secret = SecretReference(
            name=peer.spec.password_secret.name, namespace=peer.metadata.namespace
        )
        neighbor = replace(neighbor, password_secret=secret)
    return replace(neighbor, to_advertise=_advertise(given.routes))


def _advertise(routes: Mapping[str, Attributes]) -> Advertise:
    preferences: dict[int, list[str]] = defaultdict(list)
    communities: dict[str, list[str]] = defaultdict(list)
    for prefix in sorted(routes):
        attributes = routes[prefix]
        if attributes.local_preference is not None:
            preferences[attributes.local_preference].append(prefix)
        for value in attributes.communities:
            communities[f"{value >> 16}:{value & 0xFFFF}"].append(prefix)
        for large in attributes.large_communities:
            communities["large:" + ":".join(map(str, large))].append(prefix)
    return Advertise(
        allowed=AllowedOut(prefixes=tuple(sorted(routes)), mode="filtered"),
        with_local_pref=tuple(
            LocalPrefPrefixes(local_pref=value, prefixes=tuple(preferences[value]))
            for value in sorted(preferences)
        ),
        with_community=tuple(
            CommunityPrefixes(community=text, prefixes=tuple(communities[text]))
            for text in sorted(communities)
        ),
    )


def merging_options(context: NodeContext) -> Frrk8sClusterOptions:
    """Return FRR-k8s's options, which generated objects follow: it merges MetalLB's objects."""
    options = context.merging_options
    return options if isinstance(options, Frrk8sClusterOptions) else Frrk8sClusterOptions()


def _rendered(
    dialect: MetalLBDialect, snapshot: Snapshot, context: NodeContext, intent: IntentTables
) -> Iterator[dict[str, Any]]:
    """Yield the FRRConfiguration and the ServiceBGPStatuses that MetalLB's speaker would write."""
    objects = Objects.of(context.state.objects.items()) if context.state is not None else ()
    if not isinstance(objects, Objects) or not any(objects):
        return
    routes = peer_routes(snapshot, intent)
    yield configuration(context.node, merging_options(context).namespace, objects, routes)
    yield from service_statuses(context.node, dialect.options.namespace, routes)


RENDERING: Final = Rendering(_rendered)
