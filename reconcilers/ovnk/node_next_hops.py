"""The next hops of a node that are no addresses of its own, but of its DPU, or of an Uplink. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from reconcilers.ovnk.attached_networks import Network
from reconcilers.ovnk.errors import ConfigurationError, ConfigurationPending
from reconcilers.ovnk.node_prefixes import OfNode
from reconcilers.ovnk.options import OvnkOptions
from reconcilers.ovnk.parsed_annotation import parsed_annotation
from resources.addresses import parsed_interface
from resources.core import Node
from resources.errors import shortened
from resources.ovnk import node_annotations

DPU_HOST: Final = "k8s.ovn.org/dpu-host"
"""The label of a node whose traffic a DPU forwards: next hops are addresses of the DPU."""
NextHops: TypeAlias = tuple[str | None, str | None]
"""IPv4 and IPv6; None is the address of the session."""


def next_hops(
    network: Network | None, *, node: Node, given: OfNode, options: OvnkOptions
) -> NextHops:
    """Return the next hops that a node advertises in the VRF of a network: its DPU's, if it has one.

    ``network`` is None where the VRF is that of no selected network. Raises `ConfigurationError` and
    `ConfigurationPending`.
    """
    if options.gateway_mode != "shared" or DPU_HOST not in node.metadata.labels:
        return None, None
    if network is not None and network.uplink:
        return _uplink_next_hops(network.uplink, node, given)
    return _gateway_next_hops(node)


def _gateway_next_hops(node: Node) -> NextHops:
    if not node.metadata.annotations.get(node_annotations.CHASSIS):
        raise _missing(node, node_annotations.CHASSIS)
    addresses = parsed_annotation(
        node, node_annotations.GATEWAY, node_annotations.gateway_addresses
    )
    if addresses is None:
        raise _missing(node, node_annotations.GATEWAY)
    if not addresses:
        where = f"annotation {node_annotations.GATEWAY} of node {node.metadata.name}"
        raise ConfigurationError(f"{where} has no address, the next hop of its DPU")
    return _last_of_family(addresses)


def _uplink_next_hops(uplink: str, node: Node, given: OfNode) -> NextHops:
    state = given.uplinks.get(uplink)
    if state is None or not state.is_ready:
        where = f"node {node.metadata.name}"
        raise ConfigurationPending(f"the UplinkState of {uplink} on {where} is not ready")
    addresses = []
    for text in state.status.ip_addresses:
        try:
            addresses.append(str(parsed_interface(text).ip))
        except ValueError:
            text = f"UplinkState {state.metadata.name}: {shortened(text)} is not an address"
            raise ConfigurationError(text) from None
    if not addresses:
        raise ConfigurationError(f"UplinkState {state.metadata.name} has no address, the next hop")
    return _last_of_family(addresses)


def _last_of_family(addresses: Sequence[str]) -> NextHops:
    ipv4 = [address for address in addresses if ":" not in address]
    ipv6 = [address for address in addresses if ":" in address]
    return (ipv4[-1] if ipv4 else None), (ipv6[-1] if ipv6 else None)


def _missing(node: Node, annotation: str) -> ConfigurationPending:
    return ConfigurationPending(f"node {node.metadata.name} has no annotation {annotation} yet")
