"""The router ID of a node: its address, or one of the host. Pure."""

from __future__ import annotations

import ipaddress

from reconcilers.node_addresses import node_address
from resources.core import Node
from resources.host.network import Host

CILIUM_HOST = "cilium_host"


def router_id_of(node: Node | None) -> str | None:
    """Return the default router ID: the node's IPv4 address, the internal one first, as in Cilium."""
    return node_address(node, ipaddress.IPv4Address)


def router_id_of_host(host: Host) -> str | None:
    """Return the default router ID of the host: the end of the MAC address of Cilium's interface."""
    device = host.device(CILIUM_HOST)
    if device is None or not device.mac:
        return None
    router_id = ipaddress.IPv4Address(bytes.fromhex(device.mac.replace(":", ""))[-4:])
    return str(router_id) if int(router_id) else None
