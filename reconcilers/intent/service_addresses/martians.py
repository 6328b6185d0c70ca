"""Addresses that are never global unicast (RFC 6890, RFC 5735). Pure."""

from __future__ import annotations

from typing import Final

from speaker.nlri import IPV4_UNICAST, Family

_SPECIAL_IPV4: Final = frozenset({0, 127, 169, *range(224, 256)})
"""First octets of addresses that may be special."""
_IPV4_MAPPED: Final = bytes(10) + b"\xff\xff"
_IPV4_COMPATIBLE: Final = bytes(12)
_NAT64: Final = b"\x00\x64\xff\x9b" + bytes(8)
_6TO4: Final = b"\x20\x02"
_EMBEDDED: Final = (
    (_IPV4_COMPATIBLE, slice(12, 16), "an IPv4-compatible address (::/96)"),
    (_NAT64, slice(12, 16), "a NAT64 address (64:ff9b::/96)"),
    (_6TO4, slice(2, 6), "a 6to4 address (2002::/16)"),
)
"""IPv6 prefixes that embed an IPv4 address: RFC 4291, RFC 6052, RFC 3056."""


def martian(family: Family, nlri: bytes) -> str | None:
    """Return as which martian a Service's host route is no global unicast; None for any other."""
    if family != IPV4_UNICAST:
        return _special_ipv6(nlri[1:])
    return _special_ipv4(nlri[1:]) if nlri[1] in _SPECIAL_IPV4 else None


def _special_ipv4(octets: bytes) -> str | None:
    first = octets[0]
    if first == 0:
        return 'of "this network" (0.0.0.0/8)'
    if first == 127:
        return "a loopback address (127.0.0.0/8)"
    if first == 169 and octets[1] == 254:
        return "a link-local address (169.254.0.0/16)"
    if first >= 240:
        return "a reserved address (240.0.0.0/4)"
    return "a multicast address (224.0.0.0/4)" if first >= 224 else None


def _special_ipv6(octets: bytes) -> str | None:
    if octets[0] == 0xFF:
        return "a multicast address (ff00::/8)"
    if octets[0] == 0xFE and octets[1] & 0xC0 == 0x80:
        return "a link-local address (fe80::/10)"
    if octets.startswith(_IPV4_MAPPED):
        return "an IPv4-mapped address (::ffff:0:0/96)"
    value = int.from_bytes(octets, "big")
    if value <= 1:
        return "the loopback address (::1)" if value else "the unspecified address (::)"
    for prefix, place, name in _EMBEDDED:
        if octets.startswith(prefix):
            inner = _special_ipv4(octets[place])
            return None if inner is None else f"{name} with {inner}"
    return None
