"""The prefixes of a node: the subnets of its networks, and egress IPs. Pure.

They come from annotations that OVN-Kubernetes writes on the Node. A wrong annotation is an error that
names the Node and the annotation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from reconcilers.ovnk.attached_networks import Network
from reconcilers.ovnk.errors import ConfigurationError
from reconcilers.ovnk.options import OvnkOptions
from reconcilers.ovnk.parsed_annotation import parsed_annotation
from reconcilers.ovnk.selection import Advertised
from resources.core import Node
from resources.ovnk import node_annotations
from resources.ovnk.uplinkstate import UplinkState


class OfNode(NamedTuple):
    """The state of one node that other objects than its Node have."""

    egress_ips: Mapping[str, tuple[str, ...]] = {}
    """By network: prefixes of the egress IPs that the node has."""
    active: frozenset[str] | None = None
    """The networks that are on the node; None: all of them."""
    uplinks: Mapping[str, UplinkState] = {}
    """By Uplink: its state on the node."""


def is_active(network: Network, node: Node, of_node: OfNode, options: OvnkOptions) -> bool:
    """True if a network is on a node, which has prefixes of it: always, or if it has Pods there."""
    if of_node.active is None or network.cluster_network is None:
        return True
    if network.name not in of_node.active:
        return False
    if network.is_layer2 and not options.layer2_transit_router:
        ids = parsed_annotation(
            node, node_annotations.LAYER2_TUNNEL_IDS, node_annotations.tunnel_ids
        )
        return ids is not None and network.name in ids
    return True


def network_prefixes(
    advertised: Advertised, network: Network, node: Node, of_node: OfNode
) -> tuple[str, ...]:
    """Return the prefixes of a network on a node: subnets and egress IPs, each once, sorted."""
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
    by_network = parsed_annotation(node, node_annotations.SUBNETS, node_annotations.subnets)
    of_network = None if by_network is None else by_network.get(network.name)
    if not of_network:
        where = f"annotation {node_annotations.SUBNETS} of node {node.metadata.name}"
        text = f"no subnet of network {network.shown_name} in {where}"
        raise ConfigurationError(f"{text}: will wait for it")
    return of_network
