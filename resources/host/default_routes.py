"""The default routes of the kernel, their gateways and their notifications.

Notifications of other routes are dropped by a filter in the kernel, so that they do not even wake the
agent.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator
from typing import Final

from resources.host.route_messages import (
    ALL_TABLES,
    DELETE_ROUTE,
    HEADER,
    MAIN_TABLE,
    NEW_ROUTE,
    ROUTE,
    RTA_GATEWAY,
    RTA_MULTIPATH,
    RTA_VIA,
    attach_filter,
    attributes,
    dump_routes,
)

_NEXT_HOP: Final = struct.Struct("=HBBi")
"""rtnexthop: length, flags, hops, interface."""


def drop_other_routes(monitor: socket.socket) -> None:
    """Let the kernel drop notifications of routes that are no default route of the main table.

    Raises `OSError`.
    """
    type_octet = 4 if sys.byteorder == "little" else 5
    load, equal, give = 0x30, 0x15, 0x06  # BPF_LD|B|ABS, BPF_JMP|JEQ|K, BPF_RET|K
    everything, nothing = 0xFFFFFFFF, 0
    program = (
        (load, 0, 0, type_octet),
        (equal, 1, 0, NEW_ROUTE),
        (equal, 0, 4, DELETE_ROUTE),
        (load, 0, 0, HEADER.size + 1),
        (equal, 0, 3, 0),
        (load, 0, 0, HEADER.size + 4),
        (equal, 0, 1, MAIN_TABLE),
        (give, 0, 0, everything),
        (give, 0, 0, nothing),
    )
    attach_filter(monitor, program)


def main_default_routes() -> list[bytes]:
    """Dump the default routes of the kernel's main table, as netlink messages.

    Blocks. Raises `OSError`.
    """
    return _default_routes(MAIN_TABLE)


def default_gateways() -> frozenset[str]:
    """Return the gateways of the kernel's default routes, of all tables. Raises `OSError`.

    Blocks.
    """
    return frozenset(text for octets in _default_routes(ALL_TABLES) for text in gateways_of(octets))


def gateways_of(message: bytes) -> Iterator[str]:
    """Yield the gateways of a kernel route, a netlink message: a multipath route has several."""
    start = HEADER.size + ROUTE.size
    for kind, at, end in attributes(message, start, len(message)):
        if kind in (RTA_GATEWAY, RTA_VIA):
            yield from _address(message[at:end], kind)
        elif kind == RTA_MULTIPATH:
            while at + _NEXT_HOP.size <= end:
                (length, *_) = _NEXT_HOP.unpack_from(message, at)
                if length < _NEXT_HOP.size:
                    return
                inner = attributes(message, at + _NEXT_HOP.size, min(at + length, end))
                for inner_kind, first, last in inner:
                    if inner_kind in (RTA_GATEWAY, RTA_VIA):
                        yield from _address(message[first:last], inner_kind)
                at += (length + 3) & ~3


def _address(octets: bytes, kind: int) -> Iterator[str]:
    """Yield a gateway as text; RTA_VIA has its family in two octets before it."""
    value = octets[2:] if kind == RTA_VIA else octets
    if len(value) in (4, 16):
        yield socket.inet_ntop(socket.AF_INET if len(value) == 4 else socket.AF_INET6, value)


def _default_routes(table: int) -> list[bytes]:
    families = (socket.AF_INET, socket.AF_INET6)
    return [
        octets
        for family in families
        for octets in dump_routes(family, table, is_wanted=_is_default)
    ]


def _is_default(octets: bytes, route: int) -> bool:
    """Return whether the header of a route at a position has the length 0."""
    return octets[route + 1] == 0
