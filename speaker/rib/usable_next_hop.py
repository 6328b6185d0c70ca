"""Which next hops a route can be used with (RFC 4271 section 5.1.3 and 6.3): pure rules on octets.

An address that could not be a next hop at all makes the UPDATE malformed (`speaker.attribute`); here
are those that are well-formed and of no use. A route with one stays visible as not used.
"""

from __future__ import annotations

from typing import Final

_MAPPED: Final = bytes(10) + b"\xff\xff"
_LOOPBACK_6: Final = bytes(15) + b"\x01"


def is_loopback(address: bytes) -> bool:
    """Tell whether 4 or 16 octets are an address of a host to itself."""
    return address[0] == 127 if len(address) == 4 else address == _LOOPBACK_6


def unusable_reason(next_hop: bytes, own: frozenset[bytes], *, loopback: bool) -> str | None:
    """Return why a route with this next hop is not used, or None.

    ``next_hop`` has 4, 16 or 32 octets, the link-local address behind the global one not looked at.
    ``loopback``: the peer is on this host, and may have its loopback addresses as next hops.
    """
    hop = next_hop[:16]
    if hop.startswith(_MAPPED):
        hop = hop[12:]
    if hop in own:
        return "the next hop is an address of this router"
    if is_loopback(hop):
        return None if loopback else "the next hop is a loopback address"
    if len(hop) == 4:
        if hop[0] == 0:
            return "the next hop is no address of a host"
        if hop[0] >= 224:
            return "the next hop is a multicast or reserved address"
    elif hop[0] == 0xFF:
        return "the next hop is a multicast address"
    return None
