"""Reads the host's interfaces and default routes from the kernel, and again after each change.

The monitoring socket is opened before the first dump, so that no change is lost. A notification
triggers a new dump of interfaces and addresses, a moment later. Default routes are kept from the
notifications themselves (`followed_routes`), as their table may be large; notifications of other routes
never arrive. If the monitor overflows everything is read again; if it fails, `watch` raises, and its
caller starts it again.

The caller's event loop may be unable to open netlink sockets, as uvloop. Therefore the monitor is a
plain socket, and pyroute2 runs in a thread with an event loop of its own.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Iterable
from typing import Any, Final

from pyroute2 import AsyncIPRoute
from pyroute2.netlink.rtnl import (
    RTMGRP_IPV4_IFADDR,
    RTMGRP_IPV4_ROUTE,
    RTMGRP_IPV6_IFADDR,
    RTMGRP_IPV6_ROUTE,
    RTMGRP_LINK,
)

from resources.host.default_routes import drop_other_routes, main_default_routes
from resources.host.followed_routes import FollowedRoute, FollowedRoutes, parse_route
from resources.host.network import DefaultRoute, Device, Host, Vrf
from resources.host.route_messages import MAIN_TABLE
from resources.host.route_monitor import RouteMonitor

SETTLE_SECONDS: Final = 0.05
"""In which further notifications join the same dump."""
_GROUPS: Final = (
    RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE
)
_IFF_UP: Final = 1


async def watch(report: Callable[[Host], None]) -> None:
    """Report the host's interfaces and default routes by netlink, and again after each change.

    Raises `OSError` (pyroute2's NetlinkError is one) if the monitor or a dump fails.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as monitor:
        monitor.setblocking(False)
        drop_other_routes(monitor)
        monitor.bind((0, _GROUPS))
        routes = FollowedRoutes(is_main_default)
        monitored = RouteMonitor(monitor, routes)
        with monitored.reading():
            while True:
                monitored.changed.clear()
                report(await _read(routes))
                if monitored.error is not None:
                    raise monitored.error
                await monitored.changed.wait()
                await asyncio.sleep(SETTLE_SECONDS)


async def _read(routes: FollowedRoutes) -> Host:
    """Dump interfaces and addresses, and default routes if they are stale. Raises `OSError`."""
    links, addresses = await asyncio.to_thread(_dump)
    while routes.stale:
        # What is notified meanwhile may be in the dump or not.
        routes.begin()
        read = await asyncio.to_thread(main_default_routes)
        parsed = (parse_route(octets, 0, len(octets)) for octets in read)
        routes.load(route for route in parsed if route is not None)
    return host_of(links, addresses, routes.routes())


def is_main_default(route: FollowedRoute) -> bool:
    """True if netlink's monitor follows a route: a default route of the main table."""
    return not route.length and route.table == MAIN_TABLE


def _dump() -> tuple[list[Any], list[Any]]:
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        return runner.run(_dump_links())


async def _dump_links() -> tuple[list[Any], list[Any]]:
    async with AsyncIPRoute() as kernel:
        links = [link async for link in await kernel.link("dump")]
        addresses = [address async for address in await kernel.addr("dump")]
    return links, addresses


def host_of(links: list[Any], addresses: list[Any], routes: Iterable[FollowedRoute]) -> Host:
    """Convert netlink messages of links and addresses, and default routes, to the `Host`."""
    names = {link["index"]: str(link.get_attr("IFLA_IFNAME")) for link in links}
    tables = {link["index"]: table for link in links if (table := _vrf_table(link)) is not None}
    by_index: dict[int, list[str]] = {}
    networks: dict[int, dict[str, None]] = {}
    for address in addresses:
        network = address.get_attr("IFA_ADDRESS")
        text = address.get_attr("IFA_LOCAL") or network
        if text:
            by_index.setdefault(address["index"], []).append(_plain(text))
        if network:
            # Of a point-to-point link IFA_ADDRESS is the other end.
            cidr = f"{_plain(network)}/{address['prefixlen']}"
            known = networks.setdefault(address["index"], {})
            known[str(ipaddress.ip_network(cidr, strict=False))] = None
    devices = [
        Device(
            names[link["index"]],
            bool(link["flags"] & _IFF_UP),
            str(link.get_attr("IFLA_OPERSTATE") or "unknown").lower(),
            tuple(by_index.get(link["index"], ())),
            str(link.get_attr("IFLA_ADDRESS") or "").lower(),
            names[master] if (master := link.get_attr("IFLA_MASTER")) in tables else "",
            tuple(networks.get(link["index"], ())),
            link["index"],
        )
        for link in links
    ]
    defaults = {
        DefaultRoute(route.metric, _plain(route.gateway), names.get(route.interface, ""))
        for route in routes
        if route.gateway
    }
    vrfs = sorted(Vrf(names[index], table) for index, table in tables.items())
    return Host(tuple(sorted(devices)), tuple(sorted(defaults)), tuple(vrfs))


def _plain(text: object) -> str:
    """Return an address in canonical form, without a zone."""
    return str(ipaddress.ip_address(str(text).partition("%")[0]))


def _vrf_table(link: Any) -> int | None:  # noqa: ANN401  a message of pyroute2
    """Return the routing table of a VRF device, or None for another interface."""
    info = link.get_attr("IFLA_LINKINFO")
    if info is None or info.get_attr("IFLA_INFO_KIND") != "vrf":
        return None
    data = info.get_attr("IFLA_INFO_DATA")
    table = None if data is None else data.get_attr("IFLA_VRF_TABLE")
    return None if table is None else int(table)
