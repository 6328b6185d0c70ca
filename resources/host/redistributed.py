"""Reads routes that other programs have installed in given tables, and again after each change.

A health checker adds the route of an address while its backend is healthy (kube-vip: table 198,
protocol 248). The kernel filters what is read and what it notifies of, by table and protocol. After a
notification these tables, which are small, are read again; so they are after an event that takes routes
along without one: an interface goes down, an IPv4 address or a nexthop object is deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from resources.host.kernel_routes import (
    DELETE_ROUTE,
    HEADER,
    NEW_ROUTE,
    ROUTE,
    RTA_TABLE,
    attach_filter,
    attributes,
    dump_routes,
    messages,
)
from resources.host.network import KernelRoute, KernelTable

RESTS: Final = 4
"""Times as long as a reading takes until the next one, at least: of a large table, in milliseconds."""
MAX_FILTERED: Final = 256
"""Tables for which the kernel filters notifications; of more, all notifications wake the reader."""
_GROUPS: Final = 0x1 | 0x10 | 0x40 | 0x400
"""RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_ROUTE."""
_SOL_NETLINK, _ADD_MEMBERSHIP, _NEXT_HOP_GROUP = 270, 1, 32
_DATAGRAM: Final = 1 << 16
_NEW_LINK, _DELETE_LINK, _DELETE_ADDRESS, _DELETE_NEXT_HOP = 16, 17, 21, 105
_COMPATIBLE: Final = 252
"""RT_TABLE_COMPAT: the table is over 255, and in the attribute alone."""
_RTA_DST, _RTA_OIF, _RTA_NH_ID = 1, 4, 30
_IFLA_MASTER: Final = 10
_CLONED: Final = 0x200
_ROUTED: Final = frozenset((1, 2, 6, 7, 8))
"""RTN_UNICAST, LOCAL, BLACKHOLE, UNREACHABLE, PROHIBIT."""
_LINK: Final = struct.Struct("=BxHiII")
_UP, _LOWER_UP = 0x1, 0x10000
_U32: Final = struct.Struct("=I")


class _Route(NamedTuple):
    """A route as the kernel has it, with what it vanishes with."""

    row: KernelRoute
    interface: int
    """0 for a route with several next hops."""
    has_object: bool
    """True with a nexthop object."""

    @property
    def is_ipv4(self) -> bool:
        return ":" not in self.row.prefix


async def watch(
    tables: frozenset[KernelTable], report: Callable[[frozenset[KernelRoute]], None]
) -> None:
    """Report the routes of tables, and again after each change, until cancelled.

    Raises `OSError` if the monitor or a reading fails.
    """
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as monitor:
        monitor.setblocking(False)
        _filter(monitor, tables)
        monitor.bind((0, _GROUPS))
        with contextlib.suppress(OSError):
            # Before Linux 5.3 there are no nexthop objects.
            monitor.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, _NEXT_HOP_GROUP)
        changed = asyncio.Event()
        errors: list[OSError] = []
        known: list[_Route] = []
        masters: dict[int, int] = {}
        reading = False

        def on_readable() -> None:
            try:
                if _receive(monitor, known, masters, reading=reading):
                    changed.set()
            except OSError as error:
                errors.append(error)
                changed.set()

        loop.add_reader(monitor, on_readable)
        try:
            while not errors:
                changed.clear()
                began, reading = time.monotonic(), True
                known = await asyncio.to_thread(read, tables)
                took, reading = time.monotonic() - began, False
                report(frozenset(route.row for route in known))
                await changed.wait()
                await asyncio.sleep(RESTS * took)
            raise errors[0]
        finally:
            loop.remove_reader(monitor)


def read(tables: frozenset[KernelTable]) -> list[_Route]:
    """Read the routes of tables. Blocks. Raises `OSError`."""
    routes: list[_Route] = []
    for family in (socket.AF_INET, socket.AF_INET6):
        for wanted in sorted(tables, key=lambda table: (table.table, table.protocol or 0)):
            for octets in dump_routes(family, wanted.table, wanted.protocol or 0):
                route = _parse(octets)
                # An older kernel does not filter.
                if route is not None and wanted.has(route.row):
                    routes.append(route)
    return routes


def _receive(
    monitor: socket.socket, known: list[_Route], masters: dict[int, int], *, reading: bool
) -> bool:
    """Read all notifications; returns True if routes may have changed. Raises `OSError`."""
    changed = False
    with contextlib.suppress(BlockingIOError):
        while True:
            try:
                datagram = monitor.recv(_DATAGRAM)
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                changed = True
                continue
            for kind, _, start in messages(datagram):
                if kind in (NEW_ROUTE, DELETE_ROUTE):
                    changed = True
                elif kind in (_NEW_LINK, _DELETE_LINK):
                    lost = _lost_link(datagram, start, masters, gone=kind == _DELETE_LINK)
                    # What is notified during a reading may concern routes that it returns.
                    changed |= lost is not None and (
                        reading
                        or any(route.is_ipv4 and route.interface in (0, lost) for route in known)
                    )
                elif kind == _DELETE_ADDRESS:
                    changed |= reading or any(r.is_ipv4 for r in known)
                elif kind == _DELETE_NEXT_HOP:
                    changed |= reading or any(route.has_object for route in known)
    return changed


def _lost_link(datagram: bytes, start: int, masters: dict[int, int], *, gone: bool) -> int | None:
    """Return the index of a link that is down, gone or has another master; None otherwise."""
    (length, *_) = HEADER.unpack_from(datagram, start)
    end, at = min(start + length, len(datagram)), start + HEADER.size
    if at + _LINK.size > end:
        return None
    _, _, index, flags, _ = _LINK.unpack_from(datagram, at)
    master = 0
    for kind, first, last in attributes(datagram, at + _LINK.size, end):
        if kind == _IFLA_MASTER and last - first == _U32.size:
            (master,) = _U32.unpack_from(datagram, first)
    moved = masters.get(index, 0) != master
    masters[index] = master
    down = gone or not flags & _UP or not flags & _LOWER_UP
    return int(index) if down or moved else None


def _parse(octets: bytes) -> _Route | None:
    """Parse a message RTM_NEWROUTE; None if its route forwards nothing, or is a cached one."""
    if len(octets) < HEADER.size + ROUTE.size:
        return None
    fields = ROUTE.unpack_from(octets, HEADER.size)
    family, length, _, _, table, protocol, _, kind, flags = fields
    if kind not in _ROUTED or flags & _CLONED or family not in (socket.AF_INET, socket.AF_INET6):
        return None
    size = 4 if family == socket.AF_INET else 16
    address, interface, has_object = bytes(size), 0, False
    for attribute, first, last in attributes(octets, HEADER.size + ROUTE.size, len(octets)):
        value = octets[first:last]
        if attribute == _RTA_DST and len(value) == size:
            address = value
        elif attribute == _RTA_NH_ID:
            has_object = True
        elif len(value) == _U32.size:
            (number,) = _U32.unpack(value)
            if attribute == _RTA_OIF:
                interface = number
            elif attribute == RTA_TABLE:
                table = number
    prefix = ipaddress.ip_network((address, length), strict=False)
    return _Route(KernelRoute(str(prefix), table, protocol), interface, has_object)


def _filter(monitor: socket.socket, tables: frozenset[KernelTable]) -> None:
    """Let the kernel drop notifications of routes of other tables and protocols. Raises `OSError`."""
    if len(tables) > MAX_FILTERED:
        return
    load, equal, give = 0x30, 0x15, 0x06  # BPF_LD|B|ABS, BPF_JMP|JEQ|K, BPF_RET|K
    everything, nothing = 0xFFFFFFFF, 0
    type_octet = 4 if sys.byteorder == "little" else 5
    program = [
        (load, 0, 0, type_octet),
        (equal, 2, 0, NEW_ROUTE),
        (equal, 1, 0, DELETE_ROUTE),
        (give, 0, 0, everything),
    ]
    wanted = {
        (table.table if table.table < 256 else _COMPATIBLE, table.protocol) for table in tables
    }
    for octet, protocol in sorted(wanted, key=str):
        program.append((load, 0, 0, HEADER.size + 4))
        if protocol is None:
            program.append((equal, 0, 1, octet))
        else:
            program += [
                (equal, 0, 3, octet),
                (load, 0, 0, HEADER.size + 5),
                (equal, 0, 1, protocol),
            ]
        program.append((give, 0, 0, everything))
    attach_filter(monitor, [*program, (give, 0, 0, nothing)])
