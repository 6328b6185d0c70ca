"""The next hops of received routes, resolved to gateways that the kernel reaches directly. Pure.

RFC 4271 section 5.1.3, with the rules of FRR-k8s's FRR: a next hop is on a network of the node, or it
is resolved by the host's other routes, the default route included (``nht resolve-via-default``). That
of an external peer one hop away has to be on a network of the node (section 6.3). A next hop that
cannot be resolved makes no route, and is resolved again when the host changes.
"""

from __future__ import annotations

import ipaddress
from typing import Final, NamedTuple

from reconcilers.kernel.routing import Hop, NotKnown, Routing
from speaker.api.best_paths import BestPath
from speaker.attribute import address_text
from speaker.iana import Afi
from speaker.nlri import Family
from speaker.rib.usable_next_hop import is_link_local

_MAPPED: Final = bytes(10) + b"\xff\xff"


class Unresolved(NamedTuple):
    """A next hop that makes no route, and why."""

    message: str
    pending: bool = False
    """True while the host's routes are read."""


def resolve(
    path: BestPath, family: Family, vrf: str, routing: Routing
) -> tuple[Hop, ...] | Unresolved:
    """Resolve a path's next hop to gateways that the kernel reaches directly.

    ``vrf`` is that of the session which the path came by: its routes lead to the next hop. A multipath
    route leads to several gateways.
    """
    hops: tuple[Hop, ...] | Unresolved = Unresolved("the route has no next hop")
    if path.next_hop:
        hops = _resolve_global(path, family, vrf, routing)
    if path.link_local and isinstance(hops, Unresolved):
        return _resolve_link_local(path.link_local, path.interface, routing)
    return hops


def _resolve_global(
    path: BestPath, family: Family, vrf: str, routing: Routing
) -> tuple[Hop, ...] | Unresolved:
    address = path.next_hop
    text = address_text(address)
    if family.afi == Afi.IPV6 and (len(address) == 4 or address.startswith(_MAPPED)):
        return Unresolved(f"{text} is no IPv6 next hop")
    if is_link_local(address):
        return _resolve_link_local(address, path.interface, routing)
    if not is_of_host(address):
        return Unresolved(f"{text} is no address of a router")
    if routing.is_own(vrf, address):
        return Unresolved(f"{text} is an address of this node")
    neighbor = path.direct and address == _octets(path.address)
    try:
        route = routing.lookup(vrf, address, neighbor=neighbor)
    except NotKnown as unknown:
        if unknown.pending:
            return Unresolved(f"the route to {text} is not known yet", pending=True)
        return (Hop(address, path.interface or ""),)
    if route is None:
        return Unresolved(f"no route leads to {text}")
    if not route.hops:
        return Unresolved(f"the route {route.prefix} to {text} discards packets")
    if path.direct and all(hop.gateway for hop in route.hops):
        # RFC 4271 section 6.3
        return Unresolved(f"{text} is on no network of this node, and the session is of one hop")
    return tuple(dict.fromkeys(Hop(hop.gateway or address, hop.device) for hop in route.hops))


def _resolve_link_local(
    address: bytes, interface: str | None, routing: Routing
) -> tuple[Hop, ...] | Unresolved:
    text = address_text(address)
    if not interface:
        return Unresolved(f"{text} is link-local, and the interface of the session is not known")
    if not routing.is_usable(interface):
        return Unresolved(f"{text} is on interface {interface}, which is down or does not exist")
    return (Hop(address, interface),)


def is_of_host(address: bytes) -> bool:
    """True for a next hop of 4 or 16 octets that a router can have as its address."""
    if len(address) == 16 and address.startswith(_MAPPED):
        address = address[12:]
    if len(address) == 4:
        return 0 < address[0] < 224 and address[0] != 127
    return address[0] != 0xFF and int.from_bytes(address, "big") > 1


def _octets(text: str | None) -> bytes:
    return b"" if text is None else ipaddress.ip_address(text.partition("%")[0]).packed
