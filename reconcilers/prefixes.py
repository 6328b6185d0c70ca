"""Prefixes as wire bytes: a length octet and the significant octets (RFC 4271 section 4.3). Pure."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family


def host_route(text: str) -> tuple[Family, bytes]:
    """Return the host route of an address that was validated."""
    if ":" in text:
        return IPV6_UNICAST, b"\x80" + socket.inet_pton(socket.AF_INET6, text)
    return IPV4_UNICAST, b"\x20" + socket.inet_pton(socket.AF_INET, text)


def aggregate(nlri: bytes, length: int) -> bytes:
    """Shorten a prefix to ``length`` bits; a prefix that is shorter stays as it is."""
    if length >= nlri[0]:
        return nlri
    size = (length + 7) >> 3
    octets = bytearray(nlri[1 : 1 + size])
    if length & 7:
        octets[-1] &= 0xFF << (-length & 7) & 0xFF
    return bytes((length,)) + bytes(octets)


def covers(prefix: bytes, nlri: bytes) -> bool:
    """True if ``nlri`` is ``prefix`` or more specific; both are of one family."""
    return nlri[0] >= prefix[0] and aggregate(nlri, prefix[0]) == prefix


def covering(nlri: bytes) -> list[bytes]:
    """Return a prefix and every shorter one that contains it, the longest first: 33 of an IPv4 address.

    Lookups in this order find the longest match (RFC 4632 section 5.1).
    """
    return [aggregate(nlri, length) for length in range(nlri[0], -1, -1)]


def covered(nlri: bytes, prefixes: Iterable[bytes]) -> bool:
    """True if a prefix is within one of several."""
    return any(covers(prefix, nlri) for prefix in prefixes)
