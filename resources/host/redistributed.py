"""Follows routes that other programs have installed in given tables.

A health checker adds the route of an address while its backend is healthy (kube-vip: table 198,
protocol 248). The tables are read once, and followed by the kernel's notifications (`followed_routes`);
where these leave open what remains, the tables are read again.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import sys
import time
from collections.abc import Callable
from typing import Final, TypeAlias

from resources.host.followed_routes import FollowedRoute, FollowedRoutes, parse_route
from resources.host.network import KernelRoute, KernelTable
from resources.host.route_messages import (
    DELETE_ROUTE,
    HEADER,
    LARGEST_OCTET,
    MAIN_TABLE,
    NEW_ROUTE,
    attach_filter,
    dump_routes,
)
from resources.host.route_monitor import RouteMonitor

RESTS: Final = 4
"""Times as long as a reading takes until the next one, at least."""
MAX_FILTERED: Final = 256
"""Tables for which the kernel filters notifications; of more, all notifications wake the reader."""
_GROUPS: Final = 0x1 | 0x10 | 0x40 | 0x400
"""RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_ROUTE."""
_SOL_NETLINK, _ADD_MEMBERSHIP, _NEXT_HOP_GROUP = 270, 1, 32
_COMPATIBLE: Final = 252
"""RT_TABLE_COMPAT: the table is over 255, and in the attribute alone."""
_ROUTED: Final = frozenset((1, 2, 6, 7, 8))
"""RTN_UNICAST, LOCAL, BLACKHOLE, UNREACHABLE, PROHIBIT."""


_Rows: TypeAlias = dict[FollowedRoute, KernelRoute]


async def watch(
    tables: frozenset[KernelTable], report: Callable[[frozenset[KernelRoute]], None]
) -> None:
    """Report redistributed routes of other programs, and again after each change, until cancelled.

    Raises `OSError` if the monitor or a reading fails.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as monitor:
        monitor.setblocking(False)
        _filter(monitor, tables)
        monitor.bind((0, _GROUPS))
        with contextlib.suppress(OSError):
            # Before Linux 5.3 there are no nexthop objects.
            monitor.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, _NEXT_HOP_GROUP)
        routes = FollowedRoutes(_selector(tables))
        monitored = RouteMonitor(monitor, routes)
        with monitored.reading():
            rows: _Rows = {}
            reported: frozenset[KernelRoute] | None = None
            took = 0.0
            while monitored.error is None:
                monitored.changed.clear()
                if routes.stale:
                    await asyncio.sleep(RESTS * took)
                    began = time.monotonic()
                    routes.begin()
                    rows = await asyncio.to_thread(_read, tables)
                    routes.load(rows)
                    took = time.monotonic() - began
                rows = {route: rows.get(route) or _row(route) for route in routes.routes()}
                current = frozenset(rows.values())
                if current != reported:
                    report(current)
                    reported = current
                if not routes.stale:
                    await monitored.changed.wait()
            raise monitored.error


def read(tables: frozenset[KernelTable]) -> frozenset[KernelRoute]:
    """Read the redistributed routes of tables from the kernel. Blocks. Raises `OSError`."""
    return frozenset(_read(tables).values())


def _read(tables: frozenset[KernelTable]) -> _Rows:
    is_wanted, rows = _selector(tables), {}
    for family in (socket.AF_INET, socket.AF_INET6):
        for wanted in sorted(tables, key=lambda table: (table.table, table.protocol or 0)):
            for octets in dump_routes(family, wanted.table, wanted.protocol or 0):
                route = parse_route(octets, 0, len(octets))
                # An older kernel does not filter.
                if route is not None and is_wanted(route):
                    rows[route] = _row(route)
    return rows


def _selector(tables: frozenset[KernelTable]) -> Callable[[FollowedRoute], bool]:
    """Return whether a route is of these tables and protocols, and forwards or discards packets."""
    wanted = {(table.table, table.protocol) for table in tables}

    def is_wanted(route: FollowedRoute) -> bool:
        return (
            route.type in _ROUTED
            and not route.cloned
            and route.family in (socket.AF_INET, socket.AF_INET6)
            and not wanted.isdisjoint(((route.table, route.protocol), (route.table, None)))
        )

    return is_wanted


def _row(route: FollowedRoute) -> KernelRoute:
    prefix = ipaddress.ip_network((route.prefix, route.length), strict=False)
    return KernelRoute(str(prefix), route.table, route.protocol)


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
    wanted = set()
    for table in tables:
        is_octet = table.table <= LARGEST_OCTET
        # Of a small table all arrive: a route of another protocol may replace one of these. Main and
        # the tables of VRFs may have as many routes as the Internet.
        protocol = None if is_octet and table.table != MAIN_TABLE else table.protocol
        wanted.add((table.table if is_octet else _COMPATIBLE, protocol))
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
