"""The path attributes of a route, and the faults of received attributes, as frozen values."""

from __future__ import annotations

import enum
import ipaddress

import msgspec

from speaker.attribute.as_path import AsPath


class Aggregator(msgspec.Struct, frozen=True):
    """AGGREGATOR: the AS and the IPv4 address (four octets) of the aggregating speaker."""

    asn: int
    address: bytes


class UnknownAttribute(msgspec.Struct, frozen=True):
    """A transitive attribute that is passed on without being interpreted."""

    flags: int
    type: int
    value: bytes


class PathAttributes(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """The attributes of a route, NEXT_HOP or the next hop of MP_REACH_NLRI included.

    ``next_hop`` has 4 or 16 octets, or 32 with a link-local address behind the global one
    (RFC 2545 section 3); it is empty where there is none. Communities keep their received order.
    """

    origin: int = 0
    as_path: AsPath = ()
    next_hop: bytes = b""
    med: int | None = None
    local_preference: int | None = None
    atomic_aggregate: bool = False
    aggregator: Aggregator | None = None
    communities: tuple[int, ...] = ()
    large_communities: tuple[tuple[int, int, int], ...] = ()
    extended_communities: tuple[bytes, ...] = ()
    ipv6_extended_communities: tuple[bytes, ...] = ()
    originator_id: bytes | None = None
    cluster_list: tuple[bytes, ...] = ()
    otc: int | None = None
    unknown: tuple[UnknownAttribute, ...] = ()
    partial: tuple[int, ...] = ()
    """The types of known attributes with the Partial bit, ascending; it stays (RFC 4271 section 5)."""

    @property
    def next_hop_text(self) -> str:
        """The next hop's global address as text, or nothing."""
        return address_text(self.next_hop[:16]) if self.next_hop else ""

    @property
    def link_local_text(self) -> str:
        """The next hop's link-local address as text, or nothing."""
        return address_text(self.next_hop[16:]) if len(self.next_hop) == 32 else ""


def address_text(octets: bytes) -> str:
    """Format an address of 4 or 16 octets; IPv6 as in RFC 5952."""
    address = ipaddress.ip_address(octets)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return f"::ffff:{address.ipv4_mapped}"
    return str(address)


def community_text(value: int) -> str:
    """Format a standard community: ``65001:80``."""
    return f"{value >> 16}:{value & 0xFFFF}"


class ErrorHandling(enum.IntEnum):
    """The error handling approaches of RFC 7606 section 2; the strongest one of an UPDATE applies."""

    NONE = 0
    ATTRIBUTE_DISCARD = 1
    TREAT_AS_WITHDRAW = 2
    SESSION_RESET = 3

    def __str__(self) -> str:
        """Format it as the RFC does: ``treat-as-withdraw``."""
        return self.name.lower().replace("_", "-")


class AttributeFault(msgspec.Struct, frozen=True):
    """An error in the path attributes of an UPDATE, and its error handling."""

    outcome: ErrorHandling
    attribute: int
    rule: str
    subcode: int
    """The UPDATE Message Error subcode of a NOTIFICATION, where the session is reset."""
    data: bytes = b""
