"""Prefixes as wire bytes: a length octet and the significant octets (RFC 4271 section 4.3). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from socket import AF_INET, AF_INET6, inet_pton

from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family, aggregate

__all__ = ["aggregate", "covered", "covers", "host_route"]


def host_route(text: str) -> tuple[Family, bytes]:
    """Return the host route of a valid address: its family, and the prefix as wire bytes."""
    if ":" in text:
        return IPV6_UNICAST, b"\x80" + inet_pton(AF_INET6, text)
    return IPV4_UNICAST, b"\x20" + inet_pton(AF_INET, text)


def covers(prefix: bytes, nlri: bytes) -> bool:
    """True if a prefix is the other or within it, as wire bytes of one family."""
    return nlri[0] >= prefix[0] and aggregate(nlri, prefix[0]) == prefix


def covered(nlri: bytes, prefixes: Iterable[bytes]) -> bool:
    """True if a prefix is within one of several prefixes, as wire bytes."""
    return any(covers(prefix, nlri) for prefix in prefixes)


def shared_bits(one: bytes, other: bytes) -> int:
    """Return the number of leading bits that two prefixes of one family have in common."""
    bits = min(one[0], other[0])
    octets = (bits + 7) // 8
    differs = int.from_bytes(one[1 : 1 + octets]) ^ int.from_bytes(other[1 : 1 + octets])
    return min(bits, 8 * octets - differs.bit_length())
