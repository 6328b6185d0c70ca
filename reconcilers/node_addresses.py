"""The addresses of a node, as next hops of the family that a session's own address is not of. Pure."""

from __future__ import annotations

import ipaddress

from reconcilers.model import NextHop
from resources.core import Node
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST


def next_hops_of(node: Node | None, session: str | None) -> tuple[NextHop, ...]:
    """Return the node's address as next hop of the other family, for the peer at ``session``.

    None is a peer on an interface, at a link-local IPv6 address. An IPv4 session has no IPv6 address
    of its own: the IPv4-mapped form of its address, the default for a node without an IPv6 address, is
    rejected by BIRD and reachable from no router. An IPv6 session has no IPv4 address: the first one
    of its interface comes before the node's, which the speaker reads from the kernel.
    """
    is_ipv4 = session is not None and ipaddress.ip_address(session).version == 4
    if is_ipv4:
        address = node_address(node, ipaddress.IPv6Address)
    else:
        address = node_address(node, ipaddress.IPv4Address)
    family = IPV6_UNICAST if is_ipv4 else IPV4_UNICAST
    return () if address is None else (NextHop(family, address),)


def node_address(
    node: Node | None, family: type[ipaddress.IPv4Address | ipaddress.IPv6Address]
) -> str | None:
    """Return an address of a Node of a family, the internal one first; None without one."""
    if node is None:
        return None
    for wanted in ("InternalIP", "ExternalIP"):
        for address in node.status.addresses:
            # A zone belongs to the node: no other host can use the address.
            if address.type == wanted and "%" not in address.address:
                try:
                    return str(family(address.address))
                except ValueError:
                    continue
    return None
