"""What the addresses of a node are used for: its router ID, and next hops. Pure."""

from __future__ import annotations

import ipaddress

from reconcilers.model import NextHop
from resources.core import Node
from resources.host.network import Host
from speaker.nlri import IPV6_UNICAST

CILIUM_HOST = "cilium_host"


def router_id_of(node: Node | None) -> str | None:
    """Return the node's IPv4 address, the internal one first (Cilium's default mode)."""
    return _address_of(node, ipaddress.IPv4Address)


def router_id_of_host(host: Host) -> str | None:
    """Return the last four octets of the MAC address of Cilium's own interface as a router ID."""
    device = host.device(CILIUM_HOST)
    if device is None or not device.mac:
        return None
    router_id = ipaddress.IPv4Address(bytes.fromhex(device.mac.replace(":", ""))[-4:])
    return str(router_id) if int(router_id) else None


def next_hops_of(node: Node | None, session: str) -> tuple[NextHop, ...]:
    """Return the next hop of IPv6 prefixes for the peer at the address ``session``.

    An IPv4 session has no IPv6 address of its own. The IPv4-mapped form of its address, the default
    for a node without an IPv6 address, is rejected by BIRD and reachable from no router.
    """
    if ipaddress.ip_address(session).version != 4:
        return ()
    address = _address_of(node, ipaddress.IPv6Address)
    return () if address is None else (NextHop(IPV6_UNICAST, address),)


def _address_of(
    node: Node | None, family: type[ipaddress.IPv4Address | ipaddress.IPv6Address]
) -> str | None:
    """Return the node's address of a family, the internal one first."""
    if node is None:
        return None
    for wanted in ("InternalIP", "ExternalIP"):
        for address in node.status.addresses:
            if address.type == wanted:
                try:
                    return str(family(address.address))
                except ValueError:
                    continue
    return None
