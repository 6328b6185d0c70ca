"""The prefixes of a node: the subnets of its networks, egress IPs, and its addresses. Pure.

They come from annotations that OVN-Kubernetes writes on the Node. A wrong annotation is an error that
names the Node and the annotation.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeVar

from reconcilers.ovnk.errors import ConfigurationError, ConfigurationPending
from reconcilers.ovnk.networks import Network
from reconcilers.ovnk.options import OvnkOptions
from reconcilers.ovnk.selection import Advertised
from resources.core import Node
from resources.errors import shortened
from resources.ovnk import node_annotations
from resources.ovnk.node_annotations import AnnotationError, PrimaryAddresses
from resources.ovnk.uplinkstate import UplinkState

HOSTNAME: Final = "kubernetes.io/hostname"
DPU_HOST: Final = "k8s.ovn.org/dpu-host"
"""The label of a node whose traffic a DPU forwards: next hops are addresses of the DPU."""
T = TypeVar("T")


class OfNode(NamedTuple):
    """The state of one node that other objects than its Node have."""

    egress_ips: Mapping[str, tuple[str, ...]] = {}
    """By network: prefixes of the egress IPs that the node has."""
    active: frozenset[str] | None = None
    """The networks that are on the node; None: all of them."""
    uplinks: Mapping[str, UplinkState] = {}
    """By Uplink: its state on the node."""


def hostname(node: Node) -> str:
    """Return the label by which generated objects select the node."""
    return node.metadata.labels.get(HOSTNAME) or node.metadata.name


def parsed(node: Node, annotation: str, parse: Callable[[str], T]) -> T | None:
    """Return a parsed annotation of a node, None if it is absent. Raises `ConfigurationError`."""
    text = node.metadata.annotations.get(annotation)
    if text is None:
        return None
    try:
        return parse(text)
    except AnnotationError as error:
        where = f"node {node.metadata.name}: annotation {annotation}"
        raise ConfigurationError(f"{where} {error}") from None


def is_active(network: Network, node: Node, of_node: OfNode, options: OvnkOptions) -> bool:
    """True if a network is on a node: with dynamic allocation, if it has Pods or egress IPs there."""
    if of_node.active is None or network.cluster_network is None:
        return True
    if network.name not in of_node.active:
        return False
    if network.is_layer2 and not options.layer2_transit_router:
        ids = parsed(node, node_annotations.LAYER2_TUNNEL_IDS, node_annotations.tunnel_ids)
        return ids is not None and network.name in ids
    return True


def network_prefixes(
    advertised: Advertised, network: Network, node: Node, of_node: OfNode
) -> tuple[str, ...]:
    """Return the prefixes of a network on a node, each once, sorted."""
    prefixes: set[str] = set()
    if advertised.pods:
        prefixes.update(_pod_prefixes(network, node))
    if advertised.egress_ips:
        prefixes.update(of_node.egress_ips.get(network.name, ()))
    return tuple(sorted(prefixes))


def _pod_prefixes(network: Network, node: Node) -> tuple[str, ...]:
    if network.is_layer2:
        if not network.subnets:
            raise ConfigurationError(f"network {network.shown_name} has no subnets")
        return tuple(subnet.prefix for subnet in network.subnets)
    by_network = parsed(node, node_annotations.SUBNETS, node_annotations.subnets)
    of_network = None if by_network is None else by_network.get(network.name)
    if not of_network:
        where = f"annotation {node_annotations.SUBNETS} of node {node.metadata.name}"
        text = f"no subnet of network {network.shown_name} in {where}"
        raise ConfigurationError(f"{text}: will wait for it")
    return of_network


def own_addresses(node: Node) -> PrimaryAddresses:
    """Return the addresses of a node: a neighbour with one of them is the node itself."""
    addresses = parsed(node, node_annotations.PRIMARY_ADDRESS, node_annotations.primary_addresses)
    if addresses is None:
        where = f"node {node.metadata.name} has no annotation"
        raise ConfigurationError(f"{where} {node_annotations.PRIMARY_ADDRESS}")
    return addresses


def vtep_addresses(advertised: Advertised, node: Node) -> Mapping[str, tuple[str, ...]]:
    """Return the addresses of a node by VTEP, for the VTEPs of EVPN networks."""
    if not advertised.vteps:
        return {}
    by_name = parsed(node, node_annotations.VTEPS, node_annotations.vteps) or {}
    return {name: by_name[name] for name in advertised.vteps if name in by_name}


NextHops: TypeAlias = tuple[str | None, str | None]
"""IPv4 and IPv6; None is the address of the session."""


def next_hops(node: Node, options: OvnkOptions) -> NextHops:
    """Return the next hops that a node advertises: its DPU's, if it has one.

    Raises `ConfigurationError` and `ConfigurationPending`.
    """
    if not has_dpu(node, options):
        return None, None
    if not node.metadata.annotations.get(node_annotations.CHASSIS):
        raise _missing(node, node_annotations.CHASSIS)
    addresses = parsed(node, node_annotations.GATEWAY, node_annotations.gateway_addresses)
    if addresses is None:
        raise _missing(node, node_annotations.GATEWAY)
    return _last_of_family(addresses)


def has_dpu(node: Node, options: OvnkOptions) -> bool:
    """True if a DPU forwards the traffic of a node."""
    return options.gateway_mode == "shared" and DPU_HOST in node.metadata.labels


def uplink_next_hops(network: Network, node: Node, given: OfNode) -> NextHops:
    """Return the next hops of a network with an Uplink on a node with a DPU: its addresses there.

    Raises `ConfigurationError` and `ConfigurationPending`.
    """
    state = given.uplinks.get(network.uplink)
    if state is None or not state.is_ready:
        where = f"node {node.metadata.name}"
        raise ConfigurationPending(f"the UplinkState of {network.uplink} on {where} is not ready")
    addresses = []
    for text in state.status.ip_addresses:
        try:
            addresses.append(str(ipaddress.ip_interface(text).ip))
        except ValueError:
            text = f"UplinkState {state.metadata.name}: {shortened(text)} is not an address"
            raise ConfigurationError(text) from None
    return _last_of_family(addresses)


def _last_of_family(addresses: Sequence[str]) -> NextHops:
    ipv4 = [address for address in addresses if ":" not in address]
    ipv6 = [address for address in addresses if ":" in address]
    return (ipv4[-1] if ipv4 else None), (ipv6[-1] if ipv6 else None)


def _missing(node: Node, annotation: str) -> ConfigurationPending:
    return ConfigurationPending(f"node {node.metadata.name} has no annotation {annotation} yet")
