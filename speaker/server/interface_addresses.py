"""The addresses of the interface that a connection uses, of the other IP version than its own.

Read from the kernel without a library: the BGP speaker needs one address per connection, and netlink's
takes as much memory as everything else. Linux only; elsewhere no address is found.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import ipaddress
import re
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

_SIOCGIFCONF: Final = 0x8912
_IFREQ: Final = struct.Struct("=16s4x4s" + ("16x" if struct.calcsize("P") == 8 else "8x"))
"""struct ifreq with a sockaddr_in: the name of an interface (or its label), an IPv4 address."""
_IF_INET6: Final = Path("/proc/net/if_inet6")
_UNUSABLE_FLAGS: Final = 0x01 | 0x08 | 0x20 | 0x40
"""Temporary (RFC 8981), duplicate, deprecated, tentative (RFC 4862): IFA_F_*."""
_PERMANENT: Final = 0x80
_MIN_BUFFER: Final = 128 * _IFREQ.size


def other_version(
    local: str,
    ipv4: Callable[[], bytes] | None = None,
    ipv6: Callable[[], str] | None = None,
) -> str | None:
    """Return an address on the interface of ``local`` that is of the other IP version.

    ``local`` is a local address, possibly with a zone. Of IPv4 the first address; of IPv6 the lowest
    static one. Loopback, IPv6 link-local and temporary addresses are no next hops. None where the
    interface has no other, or where the kernel cannot be read. ``ipv4`` and ``ipv6`` read SIOCGIFCONF
    and /proc/net/if_inet6.
    """
    with contextlib.suppress(OSError, ValueError):
        text, _, zone = local.partition("%")
        address = ipaddress.ip_address(text)
        four, six = (ipv4 or read_ipv4)(), (ipv6 or read_ipv6)()
        if address.version == 4:
            device = _ipv4_device(four, address.packed)
            return None if device is None else _first_ipv6(six, device)
        if zone.isdigit():
            zone = socket.if_indextoname(int(zone))
        device = zone or _ipv6_device(six, address.packed)
        return None if device is None else _first_ipv4(four, device)
    return None


def read_ipv4() -> bytes:
    """Read the IPv4 addresses of all interfaces, as an array of struct ifreq. Raises OSError."""
    size = _MIN_BUFFER
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        while True:
            buffer = array.array("B", bytes(size))
            request = struct.pack("@iP", size, buffer.buffer_info()[0])
            (used,) = struct.unpack_from("@i", fcntl.ioctl(sock, _SIOCGIFCONF, request))
            # A full buffer may have lost some.
            if used < size:
                return buffer.tobytes()[:used]
            size *= 4


def read_ipv6() -> str:
    """Read the IPv6 addresses of all interfaces, a line each. Raises OSError."""
    return _IF_INET6.read_text(encoding="ascii", errors="replace")


def _ipv4_device(addresses: bytes, packed: bytes) -> str | None:
    """Return the interface with an IPv4 address."""
    return next((name for name, address in _of(addresses, packed) if address == packed), None)


def _first_ipv4(addresses: bytes, device: str) -> str | None:
    # A label has the interface's name before a colon (eth0:1).
    for name, packed in _of(addresses, device.encode()):
        if name == device and 0 < packed[0] < 224 and packed[0] != 127:
            return str(ipaddress.IPv4Address(packed))
    return None


def _of(addresses: bytes, octets: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield interface and address of the entries that have some octets in them, in order.

    A node with kube-proxy's IPVS mode has an address for each Service: no entry without the octets is
    looked at.
    """
    at = addresses.find(octets)
    while at >= 0:
        entry = at // _IFREQ.size
        name, packed = _IFREQ.unpack_from(addresses, entry * _IFREQ.size)
        yield name.rstrip(b"\x00").partition(b":")[0].decode(errors="replace"), packed
        at = addresses.find(octets, (entry + 1) * _IFREQ.size)


def _ipv6_device(lines: str, packed: bytes) -> str | None:
    match = re.search(rf"^{packed.hex()} .* (\S+)$", lines, re.MULTILINE)
    return None if match is None else match[1]


def _first_ipv6(lines: str, device: str) -> str | None:
    """Return a global address: the lowest, of the static ones if there is any.

    A line has address, index, length, scope, flags and name, in no order.
    """
    pattern = rf"^([0-9a-f]{{32}}) \S+ \S+ 00 (\S+) +{re.escape(device)}$"
    usable = [
        (not flags & _PERMANENT, match[1])
        for match in re.finditer(pattern, lines, re.MULTILINE)
        if not (flags := int(match[2], 16)) & _UNUSABLE_FLAGS
    ]
    return str(ipaddress.IPv6Address(bytes.fromhex(min(usable)[1]))) if usable else None
