"""Addresses that are never global unicast (RFC 6890, RFC 5735); IPv4 within IPv6 addresses. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from speaker.nlri import IPV4_UNICAST, Family

_SPECIAL_IPV4: Final = frozenset({0, 127, 169, *range(224, 256)})
"""First octets of addresses that may be special."""
_IPV4_MAPPED: Final = bytes(10) + b"\xff\xff"
_IPV4_COMPATIBLE: Final = bytes(12)
_NAT64: Final = b"\x00\x64\xff\x9b" + bytes(8)
_NAT64_LOCAL: Final = b"\x00\x64\xff\x9b\x00\x01" + bytes(6)
_6TO4: Final = b"\x20\x02"
_EMBEDDED: Final = (
    (_IPV4_COMPATIBLE, slice(12, 16), "an IPv4-compatible address (::/96)"),
    (_NAT64, slice(12, 16), "a NAT64 address (64:ff9b::/96)"),
    (_NAT64_LOCAL, slice(12, 16), "a NAT64 address (64:ff9b:1::/96)"),
    (_6TO4, slice(2, 6), "a 6to4 address (2002::/16)"),
)
"""IPv6 prefixes that embed an IPv4 address: RFC 4291, RFC 6052, RFC 8215, RFC 3056.

Of 64:ff9b:1::/48 the first /96 alone: an IPv4 address stands elsewhere within other prefixes of it.
"""


class EmbeddedIPv4(NamedTuple):
    """The IPv4 address within an IPv6 address."""

    form: str
    """The kind of the IPv6 address, with its prefix."""
    nlri: bytes
    """The host route of the IPv4 address."""


def embedded_ipv4(nlri: bytes) -> EmbeddedIPv4 | None:
    """Return the IPv4 address within the address of an IPv6 host route, or None."""
    octets = nlri[1:]
    for prefix, place, form in _EMBEDDED:
        if octets.startswith(prefix):
            return EmbeddedIPv4(form, b"\x20" + octets[place])
    return None


def martian(family: Family, nlri: bytes) -> str | None:
    """Return as which martian a Service's host route is no global unicast; None for any other."""
    if family != IPV4_UNICAST:
        return _special_ipv6(nlri)
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


def _special_ipv6(nlri: bytes) -> str | None:
    octets = nlri[1:]
    if octets[0] == 0xFF:
        return "a multicast address (ff00::/8)"
    if octets[0] == 0xFE and octets[1] & 0xC0 == 0x80:
        return "a link-local address (fe80::/10)"
    if octets.startswith(_IPV4_MAPPED):
        return "an IPv4-mapped address (::ffff:0:0/96)"
    value = int.from_bytes(octets, "big")
    if value <= 1:
        return "the loopback address (::1)" if value else "the unspecified address (::)"
    embedded = embedded_ipv4(nlri)
    if embedded is None:
        return None
    inner = _special_ipv4(embedded.nlri[1:])
    return None if inner is None else f"{embedded.form} with {inner}"
