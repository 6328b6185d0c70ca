"""The usability of next hops (RFC 4271 sections 5.1.3 and 6.3): pure rules on octets.

An address that cannot be a next hop makes the UPDATE malformed (`speaker.attribute`). A well-formed but
unusable one makes the route ineligible; the route remains visible in the Adj-RIB-In.
"""

from __future__ import annotations

from typing import Final

_MAPPED: Final = bytes(10) + b"\xff\xff"
_LOOPBACK_6: Final = bytes(15) + b"\x01"


def is_loopback(address: bytes) -> bool:
    """Return whether an address of 4 or 16 octets is a loopback address."""
    return address[0] == 127 if len(address) == 4 else address == _LOOPBACK_6


def is_link_local(address: bytes) -> bool:
    """Return whether an address of 4 or 16 octets is an IPv6 link-local address (RFC 4291)."""
    return len(address) == 16 and address[0] == 0xFE and address[1] & 0xC0 == 0x80


def unusable_reason(next_hop: bytes, own: frozenset[bytes], *, loopback: bool) -> str | None:
    """Return why a next hop is unusable, or None.

    ``next_hop`` has 4, 16 or 32 octets; of 32 the global address is used. ``own`` are the
    addresses of this router. ``loopback`` permits loopback addresses: the peer is on this host.
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
