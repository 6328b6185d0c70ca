"""Strict parsing of addresses and prefixes in API objects; returns canonical text.

Forms that Python's parsers accept and that are mistakes in configuration (leading zeros, host bits,
zones, IPv4-mapped IPv6 addresses) are rejected with a message that names the rule.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterator
from typing import Final

from resources.decimal_numbers import decimal_number
from resources.errors import FieldError, shortened

_ZONE = re.compile(r"[!-$&-.0-9;-~]{1,15}")
"""The name of a network interface: no space, slash, colon or percent sign, at most 15 octets."""
_LEADING_ZEROS: Final = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9a-fA-F])")
_BROADCAST: Final = ipaddress.IPv4Address("255.255.255.255")


def canonical_address(text: str, *, zone: bool = False, mapped: bool = False) -> str:
    """Return the canonical text of an IP address (RFC 5952). Raises `ValueError` naming the rule.

    ``zone`` admits that of a link-local address, ``mapped`` an IPv4-mapped IPv6 address.
    """
    if _is_dotted_quad(text):
        return text
    if not text.isascii():
        raise ValueError(f"{shortened(text)} is not an IP address")
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"{shortened(text)} is not an IP address") from None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None and not (zone and address.is_link_local):
            raise ValueError(f"{shortened(text)} has a zone, which only a link-local peer may have")
        if address.scope_id is not None and not _ZONE.fullmatch(address.scope_id):
            raise ValueError(f"{shortened(text)} has a zone that cannot be an interface's name")
        if address.ipv4_mapped is not None and not mapped:
            raise ValueError(f"{shortened(text)} is an IPv4-mapped address; write the IPv4 address")
    return str(address)


def comparable_address(text: str) -> str:
    """Return an address in canonical text, and any other text as it is: one address, one text."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text


def without_leading_zeros(text: str) -> str:
    """Return an IP address, its octets read as Kubernetes and kube-proxy read leading zeros.

    ``198.051.100.011`` is 198.51.100.11: decimal, as in ParseIPSloppy of k8s.io/utils/net.
    """
    # Few have zeros there, and each Service's addresses are looked at several times.
    if text.startswith("0") or ".0" in text or ":0" in text:
        return _LEADING_ZEROS.sub("", text)
    return text


def canonical_prefix(text: str, *, host_bits: bool = False) -> str:
    """Return the canonical text of a prefix without host bits. Raises `ValueError` naming the rule.

    ``host_bits`` clears them.
    """
    if not text.isascii() or "/" not in text:
        raise ValueError(f"{shortened(text)} is not a prefix such as 10.0.0.0/24")
    base, _, length = text.partition("/")
    if not length.isdigit() or len(length) > 3 or (len(length) > 1 and length[0] == "0"):
        raise ValueError(f"{shortened(text)}: {shortened(length)} is not a prefix length")
    address = ipaddress.ip_address(canonical_address(base))
    if int(length) > address.max_prefixlen:
        raise ValueError(f"{shortened(text)}: {shortened(length)} is not a prefix length")
    network = ipaddress.ip_network((address, int(length)), strict=False)
    if network.network_address != address and not host_bits:
        raise ValueError(f"{shortened(text)} has host bits set; the prefix is {network}")
    return str(network)


def parsed_interface(text: str) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
    """Return an address with a prefix length, as of an interface. Raises `ValueError`."""
    base, _, length = text.partition("/")
    address = ipaddress.ip_address(canonical_address(base))
    bits = decimal_number(length, address.max_prefixlen)
    if bits is None:
        raise ValueError(f"{shortened(text)}: {shortened(length)} is not a prefix length")
    return ipaddress.ip_interface((address, bits))


def _is_dotted_quad(text: str) -> bool:
    """True if a text is a dotted quad, which the C library parses as strictly, and fast."""
    try:
        socket.inet_pton(socket.AF_INET, text)
    except (OSError, ValueError):
        return False
    return True


def address_errors(
    text: str | None,
    path: str,
    *,
    zone: bool = False,
    mapped: bool = False,
    unicast: bool = False,
    zeros: bool = False,
) -> Iterator[FieldError]:
    """Yield an error when a text is not an IP address; ``unicast``: or no host can have it.

    ``zeros`` admits leading zeros (`without_leading_zeros`).
    """
    if text is None or (_is_dotted_quad(text) and not unicast):
        return
    plain = without_leading_zeros(text) if zeros else text
    try:
        address = ipaddress.ip_address(canonical_address(plain, zone=zone, mapped=mapped))
    except ValueError as error:
        yield FieldError(path, _message(text, error, "an IP address"))
        return
    if unicast and (address.is_multicast or address.is_unspecified or address == _BROADCAST):
        yield FieldError(path, f"{text!r} is not the address of a host")


def interface_errors(text: str, path: str) -> Iterator[FieldError]:
    """Yield an error when a text beside addresses cannot name an interface, or a VRF."""
    if not _ZONE.fullmatch(text) or text in (".", ".."):
        yield FieldError(path, f"{shortened(text)} cannot be the name of an interface")


def prefix_errors(text: str | None, path: str, *, host_bits: bool = False) -> Iterator[FieldError]:
    """Yield an error when the text of a field is not an IP prefix; ``host_bits`` admits them."""
    if text is not None:
        try:
            canonical_prefix(text, host_bits=host_bits)
        except ValueError as error:
            yield FieldError(path, _message(text, error, "a prefix"))


def router_id_errors(text: str | None, path: str) -> Iterator[FieldError]:
    """Yield an error when a text is not a router ID: a BGP identifier as an IPv4 address."""
    if text is not None:
        try:
            value = int(ipaddress.IPv4Address(text))
        except ValueError:
            value = 0
        if not value or not text.isascii():
            yield FieldError(path, f"{shortened(text)} is not an IPv4 address other than 0.0.0.0")


def _message(text: str, error: ValueError, what: str) -> str:
    message = str(error)
    if len(text) > 64:
        return f"{shortened(text)} is not {what}"
    return message if repr(text) in message else f"{text!r} is not {what}: {message}"
