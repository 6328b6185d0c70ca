"""Every address that a node could advertise, with the reason if it is withheld from all peers.

For explanations only. Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from reconcilers.cilium import interfaces, pod_ip_pools, services
from reconcilers.cilium.node_facts import known_node
from reconcilers.cilium.route_sets import RouteSet
from reconcilers.cilium.services import service_addresses
from reconcilers.dialect import NodeContext, Target
from reconcilers.model import ObjectRef
from resources.cilium import CiliumNode, CiliumPodIPPool
from resources.cilium.kinds import CILIUM_NODE, POD_IP_POOL
from resources.core import Node
from resources.core.kinds import BY_SERVICE, SERVICE
from resources.host.network import Device, Host, advertisable
from speaker.nlri import Family, prefix_to_wire
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.cilium.dialect import CiliumDialect

POD_CIDR = "PodCIDR"


class LabelledCandidate(NamedTuple):
    """One address or prefix of one object, with the labels by which advertisements select it."""

    object: ObjectRef
    advertisement_type: str
    """The ``advertisementType`` of the entries that select it."""
    type: str
    """The type of address of a Service; for other objects the advertisement type."""
    family: Family | None
    """None if the object has no address of the type."""
    nlri: bytes | None
    labels: Mapping[str, str] = {}
    """The labels that selectors match."""
    withheld: tuple[str, str] | None = None
    """Reason and message if it is advertised to no peer."""
    local: bool = False
    """Traffic policy Local: not aggregated."""
    reachable: bool = True
    """False for a Service without an active endpoint of the family."""
    service_field: str | None = None
    """The field of a Service that names the address."""
    in_pool: bool = False


def candidates_of_service(service: services.ServiceAddresses) -> Iterator[LabelledCandidate]:
    """Yield candidates of Cilium: a Service's addresses, and one for each type without an address."""
    for group in service.groups:
        candidate = LabelledCandidate(
            service.ref,
            services.ADVERTISEMENT_TYPE,
            group.type,
            None,
            None,
            service.labels,
            group.withheld,
            group.local,
            not service.reachable.isdisjoint(group.nlri),
            group.field,
        )
        if not group.nlri:
            yield candidate
        for family, prefixes in group.nlri.items():
            for nlri in prefixes:
                yield candidate._replace(family=family, nlri=nlri)


def candidates_of_pod_networks(node: Node) -> Iterator[LabelledCandidate]:
    """Yield candidates of Cilium: a node's pod CIDRs."""
    ref = ObjectRef("Node", "", node.metadata.name)
    for text in node.pod_networks:
        yield LabelledCandidate(ref, POD_CIDR, POD_CIDR, *prefix_to_wire(text))


def candidates_of_pod_ip_pools(
    node: CiliumNode, pools: Mapping[str, CiliumPodIPPool]
) -> Iterator[LabelledCandidate]:
    """Yield candidates: the prefixes that a node was allocated from CiliumPodIPPools."""
    kind = pod_ip_pools.ADVERTISEMENT_TYPE
    for allocation in node.spec.ipam.pools.allocated:
        pool = pools.get(allocation.pool)
        labels = pod_ip_pools.pool_labels(pool) if pool is not None else {}
        withheld = None
        if pool is None:
            withheld = ("NoPool", f"there is no CiliumPodIPPool {allocation.pool}")
        for text in allocation.cidrs:
            family, nlri = prefix_to_wire(text)
            ref = ObjectRef(kind, "", allocation.pool)
            yield LabelledCandidate(ref, kind, kind, family, nlri, labels, withheld)


def candidates_of_interfaces(
    host: Host, node: str, names: Iterable[str]
) -> Iterator[LabelledCandidate]:
    """Yield candidates of Cilium: addresses of interfaces, and one for each that does not exist."""
    kind = interfaces.ADVERTISEMENT_TYPE
    for name in names:
        device = host.device(name)
        if device is None:
            missing = ("NoInterface", f"the node has no interface {name}")
            ref = ObjectRef(kind, node, name)
            yield LabelledCandidate(ref, kind, kind, None, None, {"name": name}, missing)
            continue
        ref = ObjectRef(kind, node, device.name)
        usable = set(advertisable(device))
        for text in dict.fromkeys(device.addresses):
            length = 128 if ":" in text else 32
            family, nlri = prefix_to_wire(f"{text}/{length}")
            withheld = None if text in usable else _why_withheld(device, text)
            yield LabelledCandidate(ref, kind, kind, family, nlri, {"name": device.name}, withheld)


def _why_withheld(device: Device, text: str) -> tuple[str, str]:
    if not device.admin_up:
        return ("InterfaceDown", f"interface {device.name} is switched off")
    if not device.usable:
        return ("InterfaceDown", f"interface {device.name} is {device.oper_state}")
    address = ipaddress.ip_address(text)
    scopes = (
        ("loopback", address.is_loopback),
        ("multicast", address.is_multicast),
        ("unspecified", address.is_unspecified),
        ("link-local", address.is_link_local),
    )
    scope = next((name for name, applies in scopes if applies), "IPv4-mapped")
    return ("NotAdvertisable", f"{text} is a {scope} address")


def candidates(
    dialect: CiliumDialect,
    snapshot: Snapshot,
    context: NodeContext,
    rules: Mapping[str, RouteSet],
    target: Target | None,
) -> Iterator[LabelledCandidate]:
    """Yield Cilium's candidates: addresses of Services, pod networks, pools and interfaces."""
    t, node = dialect.tables, context.node
    named = {
        entry.interface
        for route_set in rules.values()
        for entries in route_set.entries.values()
        for entry in entries
        if entry.interface is not None
    }
    if target is not None:
        # The target may be an interface that no rule names.
        named.update(device.name for device in context.host.devices)
    yield from candidates_of_interfaces(context.host, node, sorted(named))
    known = known_node(t, snapshot, node)
    labels: Mapping[str, str] = {}
    if known is not None:
        labels = known.metadata.labels
        yield from candidates_of_pod_networks(known)
    cilium_node = t.of(CILIUM_NODE).get(snapshot, ("", node))
    if cilium_node is not None:
        pools = {pool.metadata.name: pool for pool in t.of(POD_IP_POOL).all(snapshot)}
        yield from candidates_of_pod_ip_pools(cilium_node, pools)
    for service in t.services.all(snapshot):
        ref = ObjectRef(SERVICE.name, *service.key)
        if target is None or target.prefix is not None or target.names(ref):
            slices = t.endpoint_slices.find(snapshot, BY_SERVICE, service.key)
            yield from candidates_of_service(
                service_addresses(service, slices, node, labels, dialect.service_options)
            )
