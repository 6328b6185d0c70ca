"""Addresses on which a program listens for HTTP."""

from __future__ import annotations

import ipaddress

from cells.hive import SettingError
from resources.decimal_numbers import decimal_number
from resources.errors import shortened


def parse_address(text: str, flag: str = "--http-address") -> tuple[str, int]:
    """Read ``127.0.0.1:9100``, ``[::1]:9100`` or ``9100`` (loopback); raises `SettingError`."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    number = decimal_number(port, 65535)
    if number is None or (":" in host) != ("[" in text):
        raise SettingError("", flag, f"is not [HOST:]PORT: {shortened(text)}")
    return host, number


def is_loopback(address: str) -> bool:
    """Whether an address of a socket is on loopback, an IPv4-mapped one included."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return parsed.is_loopback
