"""The path attributes of a route as one frozen value, and what can be wrong with them, as values."""

from __future__ import annotations

import enum
import ipaddress

import msgspec

from speaker.attribute.as_path import AsPath


class Aggregator(msgspec.Struct, frozen=True):
    """AGGREGATOR: who aggregated; the address is four octets."""

    asn: int
    address: bytes


class UnknownAttribute(msgspec.Struct, frozen=True):
    """An attribute that this speaker does not know; kept when it is transitive."""

    flags: int
    type: int
    value: bytes


class PathAttributes(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Everything that a route carries besides its prefix.

    ``next_hop`` is 4 or 16 octets, or 32 with a link-local address behind the global one (RFC 2545);
    empty where there is none. Communities keep the order in which they came.
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

    @property
    def next_hop_text(self) -> str:
        """The next hop's global address as text, or nothing."""
        return address_text(self.next_hop[:16]) if self.next_hop else ""

    @property
    def link_local_text(self) -> str:
        """The next hop's link-local address as text, or nothing."""
        return address_text(self.next_hop[16:]) if len(self.next_hop) == 32 else ""


def address_text(octets: bytes) -> str:
    """Spell an address of 4 or 16 octets, as RFC 5952 has it (section 5 for mapped ones)."""
    address = ipaddress.ip_address(octets)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return f"::ffff:{address.ipv4_mapped}"
    return str(address)


def community_text(value: int) -> str:
    """Spell a community: ``65001:80``."""
    return f"{value >> 16}:{value & 0xFFFF}"


class ErrorHandling(enum.IntEnum):
    """What an error in an UPDATE leads to; the strongest one of a message counts (RFC 7606)."""

    NONE = 0
    ATTRIBUTE_DISCARD = 1
    TREAT_AS_WITHDRAW = 2
    SESSION_RESET = 3

    def __str__(self) -> str:
        """Spell it as the RFC does."""
        return self.name.lower().replace("_", "-")


class AttributeFault(msgspec.Struct, frozen=True):
    """One error in the attributes of an UPDATE, and what the RFC does about it."""

    outcome: ErrorHandling
    attribute: int
    rule: str
    subcode: int
    """The UPDATE error's, should the session have to be reset."""
    data: bytes = b""
