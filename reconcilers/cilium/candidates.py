"""Every address that a node could advertise, with what speaks against it whoever is told.

For explanations only: rounds ask objects one by one, as they change. Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from reconcilers.cilium import interfaces, pod_ip_pools, services
from reconcilers.model import ObjectRef
from resources.cilium import CiliumNode, CiliumPodIPPool
from resources.core import Node
from resources.host.facts import Device, Host, advertisable
from speaker.nlri import Family, prefix_to_wire

POD_CIDR = "PodCIDR"


class Candidate(NamedTuple):
    """One address or prefix of one object."""

    object: ObjectRef
    entry: str
    """The type of advertisement that it takes."""
    type: str
    """The type of address; the same but for Services."""
    family: Family | None
    """None where the object has no address of the type."""
    nlri: bytes | None
    labels: Mapping[str, str] = {}
    """What selectors see."""
    obstacle: tuple[str, str] | None = None
    """Why it cannot be told: reason and message."""
    local: bool = False
    """Never aggregated."""
    reachable: bool = True
    """Whether something anywhere answers there."""


def of_service(facts: services.Facts) -> Iterator[Candidate]:
    """List a Service's addresses; a type of which it has none is there once, with the reason."""
    for group in facts.addresses:
        made = Candidate(
            facts.ref,
            services.ENTRY,
            group.type,
            None,
            None,
            facts.labels,
            group.withheld,
            group.local,
            facts.reachable,
        )
        if not group.nlri:
            yield made
        for family, prefixes in group.nlri.items():
            for nlri in prefixes:
                yield made._replace(family=family, nlri=nlri)


def of_pod_networks(node: Node) -> Iterator[Candidate]:
    """List a node's pod networks."""
    ref = ObjectRef("Node", "", node.metadata.name)
    for text in node.pod_networks:
        yield Candidate(ref, POD_CIDR, POD_CIDR, *prefix_to_wire(text))


def of_pools(node: CiliumNode, pools: Mapping[str, CiliumPodIPPool]) -> Iterator[Candidate]:
    """List what a node was allocated from pod IP pools."""
    kind = pod_ip_pools.ENTRY
    for allocation in node.spec.ipam.pools.allocated:
        pool = pools.get(allocation.pool)
        labels = pod_ip_pools.pool_labels(pool) if pool is not None else {}
        obstacle = None
        if pool is None:
            obstacle = ("NoPool", f"there is no CiliumPodIPPool {allocation.pool}")
        for text in allocation.cidrs:
            family, nlri = prefix_to_wire(text)
            ref = ObjectRef(kind, "", allocation.pool)
            yield Candidate(ref, kind, kind, family, nlri, labels, obstacle)


def of_interfaces(host: Host, node: str, names: Iterable[str]) -> Iterator[Candidate]:
    """List the addresses of interfaces by name; one that there is not is there once."""
    kind = interfaces.ENTRY
    for name in names:
        device = host.device(name)
        if device is None:
            gone = ("NoInterface", f"the node has no interface {name}")
            ref = ObjectRef(kind, node, name)
            yield Candidate(ref, kind, kind, None, None, {"name": name}, gone)
            continue
        ref = ObjectRef(kind, node, device.name)
        told = set(advertisable(device))
        for text in dict.fromkeys(device.addresses):
            length = 128 if ":" in text else 32
            family, nlri = prefix_to_wire(f"{text}/{length}")
            obstacle = None if text in told else _interface_obstacle(device, text)
            yield Candidate(ref, kind, kind, family, nlri, {"name": device.name}, obstacle)


def _interface_obstacle(device: Device, text: str) -> tuple[str, str]:
    if not device.admin_up:
        return ("InterfaceDown", f"interface {device.name} is switched off")
    if not device.usable:
        return ("InterfaceDown", f"interface {device.name} is {device.oper_state}")
    address = ipaddress.ip_address(text)
    kinds = (
        ("loopback", address.is_loopback),
        ("multicast", address.is_multicast),
        ("unspecified", address.is_unspecified),
        ("link-local", address.is_link_local),
    )
    kind = next((name for name, found in kinds if found), "IPv4-mapped")
    return ("NotAdvertisable", f"{text} is a {kind} address")
