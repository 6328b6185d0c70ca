"""The addresses of a node, and the next hop that its sessions over IPv4 have for IPv6 routes. Pure."""

from __future__ import annotations

import ipaddress

from reconcilers.model import NextHop
from resources.core import Node
from speaker.nlri import IPV6_UNICAST


def next_hops_of(node: Node | None, session: str) -> tuple[NextHop, ...]:
    """Return the next hop of IPv6 prefixes for the peer at the address ``session``.

    An IPv4 session has no IPv6 address of its own. The IPv4-mapped form of its address, the default
    for a node without an IPv6 address, is rejected by BIRD and reachable from no router.
    """
    if ipaddress.ip_address(session).version != 4:
        return ()
    address = node_address(node, ipaddress.IPv6Address)
    return () if address is None else (NextHop(IPV6_UNICAST, address),)


def node_address(
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
