"""Shorter prefixes that contain a prefix, in wire form."""

from __future__ import annotations


def aggregate(nlri: bytes, length: int) -> bytes:
    """Shorten a prefix to ``length`` bits; a prefix that is shorter stays as it is."""
    if length >= nlri[0]:
        return nlri
    size = (length + 7) >> 3
    octets = bytearray(nlri[1 : 1 + size])
    if length & 7:
        octets[-1] &= 0xFF << (-length & 7) & 0xFF
    return bytes((length,)) + bytes(octets)


def covering_prefixes(nlri: bytes) -> list[bytes]:
    """Return a prefix and all shorter prefixes containing it, the longest first: 33 of an IPv4 address.

    Lookups in this order find the longest match (RFC 4632 section 5.1).
    """
    return [aggregate(nlri, length) for length in range(nlri[0], -1, -1)]
