"""Defaults and checks of single values, and the error of an invalid one."""

from __future__ import annotations

import contextlib
import ipaddress
import re
from typing import Final

from speaker.iana import AS_TRANS
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST

BGP_PORT = 179
MAX_UINT32 = 0xFFFFFFFF
DEFAULT_FAMILIES = (IPV4_UNICAST, IPV6_UNICAST)

INTERFACE_NAME: Final = re.compile(r"[!-$&-.0-9;-~]{1,15}")
"""The name of a network interface: no space, slash, colon or percent sign, at most 15 octets."""


class InvalidConfig(ValueError):  # noqa: N818  named after the fault
    """An invalid setting: the object (a route has no name), the field, and the rule that it breaks."""

    def __init__(self, kind: str, name: str, field: str, rule: str) -> None:
        super().__init__(
            f"{kind} {name!r}: {field}: {rule}" if name else f"{kind}: {field}: {rule}"
        )
        self.kind = kind
        self.name = name
        self.field = field
        self.rule = rule


def check_range(kind: str, name: str, field: str, value: int, low: int, high: int) -> None:
    """Raise `InvalidConfig` if a number is out of its range."""
    if not low <= value <= high:
        raise InvalidConfig(kind, name, field, f"{value} is not within {low} to {high}")


def check_asn(kind: str, name: str, field: str, asn: int) -> None:
    """Reject values that are no AS number: 0, AS_TRANS, and values over 32 bits.

    Raises `InvalidConfig`.
    """
    if not 1 <= asn <= MAX_UINT32:
        raise InvalidConfig(kind, name, field, f"{asn}: an AS number is 1 to 4294967295 (RFC 7607)")
    if asn == AS_TRANS:
        raise InvalidConfig(kind, name, field, f"{asn} is AS_TRANS, which is reserved (RFC 6793)")


def check_next_hop(kind: str, name: str, field: str, text: str) -> int:
    """Return the IP version of a next hop. Raises `InvalidConfig` if it is no address of a host."""
    version = check_host(kind, name, field, text)
    if "%" in text:
        raise InvalidConfig(kind, name, field, f"{text!r}: a next hop has no zone")
    return version


def check_host(kind: str, name: str, field: str, text: str) -> int:
    """Return the IP version of a unicast address. Raises `InvalidConfig`."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise InvalidConfig(kind, name, field, f"{text!r} is not an IP address") from None
    if isinstance(address, ipaddress.IPv6Address):
        version, unicast = 6, address.ipv4_mapped or address
    else:
        version, unicast = 4, address
    if isinstance(unicast, ipaddress.IPv4Address):
        # RFC 1122 section 3.2.1.3: 0/8 is this host, 224/4 multicast, 240/4 reserved.
        valid = 0 < unicast.packed[0] < 224
    else:
        valid = not unicast.is_unspecified and not unicast.is_multicast
    if not valid:
        raise InvalidConfig(kind, name, field, f"{text} is not the address of a host")
    return version


def check_listening(kind: str, name: str, field: str, text: str) -> None:
    """Reject addresses on which no socket can listen; an unspecified address is all of its family."""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(text).is_unspecified:
            return
    check_host(kind, name, field, text)
