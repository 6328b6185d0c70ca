"""Routes of the kernel by raw netlink, as messages; the default routes, and their notifications.

A node may have as many routes as the Internet. The kernel filters by table; of what it sends, only the
headers of other routes are read. Notifications of other routes are dropped by a filter in the kernel,
so that they do not even wake the agent.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final

MAIN_TABLE: Final = 254
ALL_TABLES: Final = 0

# linux/netlink.h, linux/rtnetlink.h, asm/socket.h, linux/filter.h
_SOL_NETLINK, _STRICT_CHECK = 270, 12
_SO_ATTACH_FILTER = 26
_REQUEST, _DUMP = 0x1, 0x300
_INTERRUPTED = 0x10
_ERROR, _DONE = 2, 3
NEW_ROUTE, DELETE_ROUTE, _GET_ROUTE = 24, 25, 26
HEADER: Final = struct.Struct("=IHHII")
"""nlmsghdr: length, type, flags, sequence, port."""
ROUTE: Final = struct.Struct("=BBBBBBBBI")
"""rtmsg: family, destination length, source length, TOS, table, protocol, scope, type, flags."""
_ATTRIBUTE: Final = struct.Struct("=HH")
"""rtattr: length, type."""
_NEXT_HOP: Final = struct.Struct("=HBBi")
"""rtnexthop: length, flags, hops, interface."""
RTA_GATEWAY, RTA_MULTIPATH, RTA_TABLE, _RTA_VIA = 5, 9, 15, 18
LARGEST_OCTET: Final = 255
_TYPE_MASK: Final = 0x3FFF
_CODE: Final = struct.Struct("=i")
_BUFFER: Final = 1 << 16
_SECONDS: Final = 10.0
_ATTEMPTS: Final = 5

_EMPTY: Final = frozenset({errno.ENOENT, errno.EAFNOSUPPORT, errno.EOPNOTSUPP})
"""No such table, or no such family: no routes."""


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


def attach_filter(monitor: socket.socket, program: Sequence[tuple[int, int, int, int]]) -> None:
    """Attach a BPF filter to a netlink socket for kernel routes: code, jumps, operand.

    Raises `OSError`.
    """
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    monitor.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_)


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
        if kind in (RTA_GATEWAY, _RTA_VIA):
            yield from _address(message[at:end], kind)
        elif kind == RTA_MULTIPATH:
            while at + _NEXT_HOP.size <= end:
                (length, *_) = _NEXT_HOP.unpack_from(message, at)
                if length < _NEXT_HOP.size:
                    return
                inner = attributes(message, at + _NEXT_HOP.size, min(at + length, end))
                for inner_kind, first, last in inner:
                    if inner_kind in (RTA_GATEWAY, _RTA_VIA):
                        yield from _address(message[first:last], inner_kind)
                at += (length + 3) & ~3


def attributes(message: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the attributes in a netlink message of a kernel route: type, begin and end of value."""
    while at + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        if length < _ATTRIBUTE.size or at + length > end:
            return
        yield kind & _TYPE_MASK, at + _ATTRIBUTE.size, at + length
        at += (length + 3) & ~3


def _address(octets: bytes, kind: int) -> Iterator[str]:
    """Yield a gateway as text; RTA_VIA has its family in two octets before it."""
    value = octets[2:] if kind == _RTA_VIA else octets
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


def dump_routes(
    family: int,
    table: int,
    protocol: int = 0,
    is_wanted: Callable[[bytes, int], bool] = lambda _octets, _route: True,
) -> list[bytes]:
    """Dump kernel routes by family, table (0 is all) and protocol (0 is any), as raw messages.

    ``is_wanted`` takes what was received, and where the header of a route is in it. Kernels before
    Linux 4.20 do not filter by protocol. Blocks. Raises `OSError`.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.bind((0, 0))
        kernel.setsockopt(_SOL_NETLINK, _STRICT_CHECK, 1)
        octet = table if table <= LARGEST_OCTET else 0
        message = ROUTE.pack(family, 0, 0, 0, octet, protocol, 0, 0, 0)
        if octet != table:
            message += _ATTRIBUTE.pack(_ATTRIBUTE.size + 4, RTA_TABLE) + struct.pack("=I", table)
        for sequence in range(1, _ATTEMPTS + 1):
            size = HEADER.size + len(message)
            head = HEADER.pack(size, _GET_ROUTE, _REQUEST | _DUMP, sequence, 0)
            kernel.send(head + message)
            received: list[bytes] = []
            if _read_answer(kernel, received, is_wanted):
                return received
        raise OSError(errno.EAGAIN, "the routing table changed during every dump")


def _read_answer(
    kernel: socket.socket, received: list[bytes], is_wanted: Callable[[bytes, int], bool]
) -> bool:
    """Append the wanted routes of an answer; returns False if the table changed meanwhile."""
    consistent = True
    while True:
        octets = kernel.recv(_BUFFER)
        for kind, flags, start in messages(octets):
            consistent = consistent and not flags & _INTERRUPTED
            body = start + HEADER.size
            if kind in (_ERROR, _DONE):
                (code,) = _CODE.unpack_from(octets, body)
                if code and -code not in _EMPTY:
                    raise OSError(-code, "the routes cannot be read")
                return consistent
            if kind == NEW_ROUTE and is_wanted(octets, body):
                (length, *_) = HEADER.unpack_from(octets, start)
                received.append(octets[start : start + length])


def messages(octets: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield type, flags and position of each netlink message about kernel routes in a datagram."""
    position = 0
    while position + HEADER.size <= len(octets):
        length, kind, flags, _, _ = HEADER.unpack_from(octets, position)
        if length < HEADER.size:
            return
        yield kind, flags, position
        position += (length + 3) & ~3
