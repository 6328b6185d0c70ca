"""Addresses on which a program listens for HTTP."""

from __future__ import annotations

import ipaddress
import os

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


def cannot_listen(host: str, port: int, error: OSError) -> str:
    """Return the sentence for an address at which nothing can listen, with the reason."""
    # asyncio's error has the address and a sentence of its own; an error of name resolution has no
    # error number.
    known = error.errno is not None and error.errno > 0
    why = os.strerror(error.errno or 0) if known else error.strerror or str(error)
    return f"cannot listen on {host}:{port}: {why[:1].lower()}{why[1:]}"


def is_loopback(address: str) -> bool:
    """Whether an address of a socket is on loopback, an IPv4-mapped one included."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return parsed.is_loopback
