"""Whether a process of this network namespace listens on a port that this process may not bind.

The kernel refuses a port below 1024 to a plain user before it looks whether the port is free. Its table
of TCP sockets (``/proc/net/tcp``, ``tcp6``) has the answer for every user.
"""

from __future__ import annotations

import ipaddress
import struct
from pathlib import Path
from typing import Final

_TABLES: Final = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}
_LISTEN: Final = "0A"


def is_listened_on(address: str, port: int) -> bool:
    """Return whether a socket listens on the address and port, or on a wildcard that includes it.

    False where the kernel has no such table.
    """
    wanted = ipaddress.ip_address(address.partition("%")[0])
    try:
        with _TABLES[wanted.version].open(encoding="ascii") as table:
            next(table, None)
            for line in table:
                _, local, _, state, *_ = line.split()
                if state != _LISTEN:
                    # Listening sockets come first; a node may have 100,000 connections behind them.
                    return False
                host, _, number = local.partition(":")
                if int(number, 16) == port and _overlap(_address(host), wanted):
                    return True
    except (OSError, ValueError):
        return False
    return False


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address of the table: 32-bit words in hexadecimal, each in the host's order."""
    words = (int(text[start : start + 8], 16) for start in range(0, len(text), 8))
    return ipaddress.ip_address(b"".join(struct.pack("=I", word) for word in words))


def _overlap(
    one: ipaddress.IPv4Address | ipaddress.IPv6Address,
    other: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> bool:
    return one == other or one.is_unspecified or other.is_unspecified
