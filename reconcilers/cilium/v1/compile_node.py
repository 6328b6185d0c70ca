"""Compiles a CiliumBGPPeeringPolicy for one node: instances, peers and route sets.

Pure. A virtual router is an instance named by its AS number, a neighbor is a peer named by its
address; the objects that `translate` generates have the same names, so that a node can be migrated to
them without a session reset. An invalid part becomes a `Problem`; all other parts are compiled.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping

import msgspec

from reconcilers.cilium import sessions
from reconcilers.cilium.default_router_id import router_id_of
from reconcilers.cilium.instances import CompiledNode
from reconcilers.cilium.passwords import session_password
from reconcilers.cilium.route_sets import (
    AdvertisementEntry,
    RouteSet,
    compile_attributes,
    named_set,
)
from reconcilers.cilium.v1.annotations import (
    AnnotationError,
    router_settings,
    unreadable_keys,
)
from reconcilers.cilium.v1.in_effect import policy_ref
from reconcilers.dialect.join import united
from reconcilers.model import Attributes, Instance, ObjectRef, Peer, Problem, SuppressedFamily
from reconcilers.node_addresses import next_hops_of
from resources.cilium import CiliumBGPPeeringPolicy, CiliumLoadBalancerIPPool
from resources.cilium.advertisement import AdvertisementAttributes
from resources.cilium.peeringpolicy import Neighbor, PathAttributes, VirtualRouter
from resources.core import Node, Secret
from resources.label_selectors import LabelSelector
from speaker.nlri import Family, prefix_to_wire


class Context(msgspec.Struct, frozen=True):
    """The objects that a policy refers to."""

    node: Node
    load_balancer_pools: tuple[CiliumLoadBalancerIPPool, ...]
    secrets: Mapping[str, Secret]
    secrets_namespace: str


def compile_policy(policy: CiliumBGPPeeringPolicy, context: Context) -> CompiledNode:
    """Compile a CiliumBGPPeeringPolicy for one node."""
    compiled = CompiledNode([], [], {}, [])
    node = context.node.metadata
    for key in unreadable_keys(node.annotations):
        text = "ignored: it names no AS number"
        compiled.problems.append(Problem((_node_ref(context),), _annotation(key), text))
    for i, router in enumerate(policy.spec.virtual_routers):
        _router(policy, f"spec.virtualRouters[{i}]", router, context, compiled)
    return compiled


def attributes_of(given: PathAttributes) -> Attributes:
    """Compile the path attributes of a CiliumBGPPeeringPolicy: communities as numbers."""
    return compile_attributes(
        AdvertisementAttributes(
            communities=given.communities, local_preference=given.local_preference
        )
    )


def _node_ref(context: Context) -> ObjectRef:
    return ObjectRef("Node", "", context.node.metadata.name)


def _annotation(key: str) -> str:
    return f"metadata.annotations[{key}]"


def _router(
    policy: CiliumBGPPeeringPolicy,
    path: str,
    router: VirtualRouter,
    context: Context,
    compiled: CompiledNode,
) -> None:
    ref = policy_ref(policy.metadata.name)
    name = str(router.local_asn)
    invalid = sessions.invalid_asn(router.local_asn)
    if router.local_asn == 0:
        invalid = "0 is no AS number (RFC 7607)"
    if invalid is not None:
        text = f"virtual router is not configured: {invalid}"
        compiled.problems.append(Problem((ref,), f"{path}.localASN", text, (name,)))
        return
    try:
        settings = router_settings(context.node.metadata.annotations, router.local_asn)
    except AnnotationError as error:
        text = f"virtual router {name} is not configured: {error.message}"
        objects = (_node_ref(context), ref)
        compiled.problems.append(Problem(objects, _annotation(error.key), text, (name,)))
        return
    compiled.problems.extend(
        Problem(
            (_node_ref(context), ref),
            _annotation(f"cilium.io/bgp-virtual-router.{name}"),
            f"{part!r} is ignored: router-id=ADDRESS and local-port=PORT are known",
        )
        for part in settings.ignored
    )
    router_id = settings.router_id or router_id_of(context.node)
    if router_id is None:
        node = context.node.metadata.name
        text = (
            f"virtual router {name} has no router ID: node {node} has no IPv4 address; set "
            f"router-id in the Node's annotation cilium.io/bgp-virtual-router.{name}"
        )
        compiled.problems.append(Problem((ref, _node_ref(context)), path, text, (name,)))
        return
    port = settings.local_port
    holder = next((i.name for i in compiled.instances if i.listen_port == port), None)
    if port is not None and holder is not None:
        text = f"virtual router {name} does not listen: {port} is the port of {holder}"
        where = _annotation(f"cilium.io/bgp-virtual-router.{name}")
        compiled.problems.append(Problem((_node_ref(context), ref), where, text))
        port = None
    compiled.instances.append(Instance(name, None, router.local_asn, router_id, port, origin=ref))
    seen: set[str] = set()
    for j, neighbor in enumerate(router.neighbors):
        where = f"{path}.neighbors[{j}]"
        if neighbor.address in seen:
            text = f"{neighbor.address} is listed twice; the first entry is used"
            compiled.problems.append(Problem((ref,), f"{where}.peerAddress", text))
            continue
        seen.add(neighbor.address)
        invalid_field = _invalid_field(neighbor)
        if invalid_field is not None:
            field, reason = invalid_field
            text = f"{neighbor.address} is not configured: {reason}"
            out = (name, neighbor.address)
            compiled.problems.append(Problem((ref,), f"{where}.{field}", text, out))
            continue
        peer = _peer(ref, where, router, neighbor, context, compiled)
        if peer.families:
            compiled.peers.append(peer)
        else:
            text = f"{neighbor.address} is not configured: none of its families is spoken"
            out = (name, neighbor.address)
            compiled.problems.append(Problem((ref,), f"{where}.families", text, out))


def _invalid_field(neighbor: Neighbor) -> tuple[str, str] | None:
    """Return the field, and the reason, for which no session with a neighbor is possible, or None."""
    invalid = sessions.invalid_host(neighbor.address)
    if invalid is None and _is_link_local(neighbor.address):
        invalid = "it is link-local, and a neighbor has no interface; use CiliumBGPClusterConfig"
    if invalid is not None:
        return "peerAddress", invalid
    invalid = sessions.invalid_asn(neighbor.peer_asn)
    return None if invalid is None else ("peerASN", invalid)


def _is_link_local(text: str) -> bool:
    address = ipaddress.ip_address(text)
    return address.version == 6 and address.is_link_local


def _peer(
    ref: ObjectRef,
    path: str,
    router: VirtualRouter,
    neighbor: Neighbor,
    context: Context,
    compiled: CompiledNode,
) -> Peer:
    families = sessions.families(
        ref,
        f"{path}.families",
        ((item.afi, item.safi, None) for item in neighbor.chosen_families),
        compiled.problems,
    )
    route_set = _route_set(ref, router, neighbor, families, context)
    if route_set is not None:
        compiled.route_sets[route_set.name] = route_set
    password, down_reason = session_password(
        ref,
        f"{path}.authSecretRef",
        neighbor.auth_secret_ref,
        context.secrets,
        context.secrets_namespace,
        compiled.problems,
    )
    return Peer(
        instance=str(router.local_asn),
        name=neighbor.address,
        address=neighbor.address,
        interface=None,
        peer_asn=neighbor.peer_asn,
        peer_port=neighbor.peer_port,
        hold_time=neighbor.hold_time_seconds,
        keepalive_time=neighbor.keep_alive_time_seconds,
        connect_retry_time=neighbor.connect_retry_time_seconds,
        ebgp_multihop=neighbor.ebgp_multihop_ttl,
        password=password,
        graceful_restart=sessions.graceful_restart(neighbor.graceful_restart),
        families=tuple(sorted(families)),
        route_set=route_set.name if route_set is not None else None,
        next_hops=next_hops_of(context.node, neighbor.address),
        origins=(ref,),
        down_reason=down_reason,
        suppressed=tuple(
            SuppressedFamily(
                family,
                "NoAdvertisements",
                f"virtual router {router.local_asn} of the policy exports nothing",
                ref,
            )
            for family in sorted(families)
            if route_set is None or family not in route_set.entries
        ),
    )


def _route_set(
    ref: ObjectRef,
    router: VirtualRouter,
    neighbor: Neighbor,
    families: Iterable[Family],
    context: Context,
) -> RouteSet | None:
    entries = {
        family: of_neighbor
        for family in families
        if (of_neighbor := _entries(ref, router, neighbor, family, context))
    }
    return named_set(entries) if entries else None


def _entries(
    ref: ObjectRef,
    router: VirtualRouter,
    neighbor: Neighbor,
    family: Family,
    context: Context,
) -> tuple[AdvertisementEntry, ...]:
    """Return the entries of a family: an entry without attributes for each kind, one per attributes.

    An entry with attributes selects a part of what the entry without selects; the attributes of both
    are joined per prefix.
    """
    entries: list[AdvertisementEntry] = []
    plain = Attributes()
    given = {
        kind: [a for a in neighbor.advertised_path_attributes if a.selector_type == kind]
        for kind in ("PodCIDR", "CiliumLoadBalancerIPPool", "CiliumPodIPPool")
    }
    if router.export_pod_cidr:
        labels = context.node.metadata.labels
        matching = [attributes_of(a) for a in given["PodCIDR"] if _matches(a.selector, labels)]
        attributes = united(matching) if matching else plain
        entries.append(AdvertisementEntry(ref, "PodCIDR", None, frozenset(), None, attributes))
    if router.service_selector is not None:
        entry = AdvertisementEntry(
            ref,
            "Service",
            router.service_selector,
            frozenset(router.service_addresses),
            None,
            plain,
            needs_endpoint=True,
        )
        entries.append(entry)
        for item in given["CiliumLoadBalancerIPPool"]:
            within = _pool_prefixes(item.selector, family, context.load_balancer_pools)
            if within:
                attributes = attributes_of(item)
                entries.append(entry._replace(attributes=attributes, within=within))
    if router.pod_ip_pool_selector is not None:
        entry = AdvertisementEntry(
            ref, "CiliumPodIPPool", router.pod_ip_pool_selector, frozenset(), None, plain
        )
        entries.append(entry)
        for item in given["CiliumPodIPPool"]:
            both = (item.selector or LabelSelector()).both(router.pod_ip_pool_selector)
            entries.append(entry._replace(selector=both, attributes=attributes_of(item)))
    return tuple(entries)


def _matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    return selector is None or selector.matches(labels)


def _pool_prefixes(
    selector: LabelSelector | None, family: Family, pools: Iterable[CiliumLoadBalancerIPPool]
) -> tuple[bytes, ...]:
    prefixes: set[bytes] = set()
    for pool in pools:
        if not pool.spec.disabled and _matches(selector, pool.metadata.labels):
            for text in pool.prefixes:
                prefix_family, nlri = prefix_to_wire(text)
                if prefix_family == family:
                    prefixes.add(nlri)
    return tuple(sorted(prefixes))
