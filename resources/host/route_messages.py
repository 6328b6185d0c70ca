"""Routes of the kernel by raw netlink, as messages.

A node may have as many routes as the Internet. The kernel filters by table; of what it sends, only the
headers of other routes are read.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import struct
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
RTA_GATEWAY, RTA_MULTIPATH, RTA_TABLE, RTA_VIA = 5, 9, 15, 18
LARGEST_OCTET: Final = 255
_TYPE_MASK: Final = 0x3FFF
_CODE: Final = struct.Struct("=i")
_BUFFER: Final = 1 << 16
_SECONDS: Final = 10.0
_ATTEMPTS: Final = 5

_EMPTY: Final = frozenset({errno.ENOENT, errno.EAFNOSUPPORT, errno.EOPNOTSUPP})
"""No such table, or no such family: no routes."""


def attach_filter(monitor: socket.socket, program: Sequence[tuple[int, int, int, int]]) -> None:
    """Attach a BPF filter to a netlink socket for kernel routes: code, jumps, operand.

    Raises `OSError`.
    """
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    monitor.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_)


def attributes(message: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the attributes in a netlink message of a kernel route: type, begin and end of value."""
    while at + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        if length < _ATTRIBUTE.size or at + length > end:
            return
        yield kind & _TYPE_MASK, at + _ATTRIBUTE.size, at + length
        at += (length + 3) & ~3


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
