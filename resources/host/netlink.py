"""The kernel as the source of host facts: everything once, and again whenever something changes.

A monitor is opened first and everything is read after that, so that no change falls between. What the
monitor says is only taken as the news that there is news: what counts is read anew, as a whole, a
moment later. A monitor that overflows or breaks is opened again by whoever runs `watch`.

The event loop of the caller may be one that opens no netlink sockets, as uvloop's. So the monitor is a
plain socket, which any loop can wait for, and pyroute2 reads in a thread with a loop of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Callable
from typing import Any, Final

from pyroute2 import AsyncIPRoute
from pyroute2.netlink.rtnl import (
    RTMGRP_IPV4_IFADDR,
    RTMGRP_IPV4_ROUTE,
    RTMGRP_IPV6_IFADDR,
    RTMGRP_IPV6_ROUTE,
    RTMGRP_LINK,
)

from resources.host.facts import DefaultRoute, Device, Host

SETTLE: Final = 0.05
"""Seconds in which further news join the same reading."""
_GROUPS: Final = (
    RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE
)
_DATAGRAM: Final = 1 << 16
"""Octets of a datagram that are read; the rest does not matter."""
_IFF_UP: Final = 1
_MAIN_TABLE: Final = 254


async def watch(found: Callable[[Host], None]) -> None:
    """Tell the host as it is, and again after each change, until cancelled.

    Raises OSError (pyroute2's NetlinkError is one) when the kernel cannot be asked any more.
    """
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as monitor:
        monitor.setblocking(False)
        monitor.bind((0, _GROUPS))
        news = asyncio.Event()
        errors: list[OSError] = []

        def hear() -> None:
            try:
                _drain(monitor)
            except OSError as error:
                errors.append(error)
            news.set()

        loop.add_reader(monitor, hear)
        try:
            while True:
                news.clear()
                found(await read())
                await news.wait()
                if errors:
                    raise errors[0]
                await asyncio.sleep(SETTLE)
        finally:
            loop.remove_reader(monitor)


def _drain(monitor: socket.socket) -> None:
    """Take all that the monitor has to say. Raises OSError, as when it has missed something."""
    with contextlib.suppress(BlockingIOError):
        while True:
            monitor.recv(_DATAGRAM)


async def read() -> Host:
    """Read everything once. Raises OSError."""
    return await asyncio.to_thread(_read)


def _read() -> Host:
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        return runner.run(_ask())


async def _ask() -> Host:
    async with AsyncIPRoute() as kernel:
        links = [link async for link in await kernel.link("dump")]
        addresses = [address async for address in await kernel.addr("dump")]
        routes = [route async for route in await kernel.route("dump")]
    return host_of(links, addresses, routes)


def host_of(links: list[Any], addresses: list[Any], routes: list[Any]) -> Host:
    """Make facts of netlink messages."""
    names = {link["index"]: str(link.get_attr("IFLA_IFNAME")) for link in links}
    by_index: dict[int, list[str]] = {}
    for address in addresses:
        text = address.get_attr("IFA_LOCAL") or address.get_attr("IFA_ADDRESS")
        if text:
            plain = str(ipaddress.ip_address(str(text).partition("%")[0]))
            by_index.setdefault(address["index"], []).append(plain)
    devices = [
        Device(
            names[link["index"]],
            bool(link["flags"] & _IFF_UP),
            str(link.get_attr("IFLA_OPERSTATE") or "unknown").lower(),
            tuple(by_index.get(link["index"], ())),
            str(link.get_attr("IFLA_ADDRESS") or "").lower(),
        )
        for link in links
    ]
    defaults = {
        DefaultRoute(
            int(route.get_attr("RTA_PRIORITY") or 0),
            str(ipaddress.ip_address(str(gateway).partition("%")[0])),
            names.get(route.get_attr("RTA_OIF"), ""),
        )
        for route in routes
        if route["dst_len"] == 0
        and (route.get_attr("RTA_TABLE") or route["table"]) == _MAIN_TABLE
        and (gateway := route.get_attr("RTA_GATEWAY"))
    }
    return Host(tuple(sorted(devices)), tuple(sorted(defaults)))
