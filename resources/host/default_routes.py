"""The default routes of the main table, kept by the kernel's notifications. Pure.

A table with as many routes as the Internet is read once, and again only if notifications were lost or
leave open what remains. Links that flap cost no reading: a link that is set down takes its IPv4 routes
without a message, IPv6 routes are reported.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from resources.host.kernel_routes import (
    DELETE_ROUTE,
    HEADER,
    MAIN_TABLE,
    NEW_ROUTE,
    ROUTE,
    RTA_GATEWAY,
    RTA_MULTIPATH,
    attributes,
    messages,
)

_REPLACE: Final = 0x100
_NEW_LINK, _DELETE_LINK, _DELETE_ADDRESS = 16, 17, 21
_RTA_OIF, _RTA_PRIORITY, _RTA_TABLE, _RTA_NH_ID = 4, 6, 15, 30
_IFLA_MASTER: Final = 10
_LINK: Final = struct.Struct("=BxHiII")
"""ifinfomsg: family, type, index, flags, changed flags."""
_UP, _LOWER_UP = 0x1, 0x10000
_U32: Final = struct.Struct("=I")


class KernelDefault(NamedTuple):
    """A default route of the main table."""

    family: int
    tos: int
    metric: int
    gateway: str
    """Empty without one of the route's own family, and for a route with several next hops."""
    interface: int
    """Index; 0 for a route with several next hops."""
    object: int
    """The nexthop object; 0 without one."""

    @property
    def place(self) -> tuple[int, int, int]:
        """Routes of one place replace each other, or stand beside each other."""
        return self[:3]

    @property
    def is_plain(self) -> bool:
        """True for a route with one next hop of its own."""
        return bool(self.interface) and not self.object


class DefaultRoutes:
    """The default routes as the kernel has them, as far as it notifies."""

    def __init__(self) -> None:
        self.stale = True
        """True if the table has to be read: `load`."""
        self._routes: dict[tuple[int, int, int], KernelDefault] = {}
        self._beside: set[KernelDefault] = set()
        """Further routes of the same places."""
        self._masters: dict[int, int] = {}
        self._since: list[bytes] | None = None
        """Notifications since a reading of the table began; None if none is going on."""

    def routes(self) -> tuple[KernelDefault, ...]:
        """Return the routes."""
        return (*self._routes.values(), *self._beside)

    def begin(self) -> None:
        """The table is about to be read: notifications from here on come on top of it."""
        self.stale = False
        self._since = []

    def load(self, read: Iterable[bytes]) -> None:
        """Take the default routes of the table, as messages with their headers."""
        self._routes.clear()
        self._beside.clear()
        for octets in read:
            route = _parse(octets, 0, len(octets))
            if route is not None and self._routes.setdefault(route.place, route) != route:
                self._beside.add(route)
        since, self._since = self._since or (), None
        for datagram in since:
            self.notified(datagram)

    def notified(self, datagram: bytes) -> None:
        """Take notifications of routes, links and addresses; others have no effect."""
        if self._since is not None:
            self._since.append(datagram)
            return
        for kind, flags, start in messages(datagram):
            (length, *_) = HEADER.unpack_from(datagram, start)
            end = min(start + length, len(datagram))
            if kind in (NEW_ROUTE, DELETE_ROUTE):
                route = _parse(datagram, start, end)
                if route is not None:
                    self._route(route, flags, added=kind == NEW_ROUTE)
            elif kind in (_NEW_LINK, _DELETE_LINK):
                self._link(datagram, start, end, gone=kind == _DELETE_LINK)
            elif kind == _DELETE_ADDRESS and datagram[start + HEADER.size] == socket.AF_INET:
                # Routes that prefer it as their source go with it, or all of the interface.
                self.stale = self.stale or any(r.family == socket.AF_INET for r in self.routes())

    def _route(self, route: KernelDefault, flags: int, *, added: bool) -> None:
        known = self._routes.get(route.place)
        if any(other.place == route.place for other in self._beside):
            self.stale = True
        elif added:
            if known in (None, route) or flags & _REPLACE:
                self._routes[route.place] = route
            else:
                self.stale = True
        elif known == route:
            del self._routes[route.place]
        elif known is not None:
            self.stale = True

    def _link(self, datagram: bytes, start: int, end: int, *, gone: bool) -> None:
        if start + HEADER.size + _LINK.size > end:
            return
        _, _, index, flags, _ = _LINK.unpack_from(datagram, start + HEADER.size)
        master = 0
        for kind, at, last in attributes(datagram, start + HEADER.size + _LINK.size, end):
            if kind == _IFLA_MASTER and last - at == _U32.size:
                (master,) = _U32.unpack_from(datagram, at)
        enslaved = self._masters.get(index, 0) != master
        self._masters[index] = master
        lost = gone or not flags & _UP or not flags & _LOWER_UP
        for route in self.routes():
            if route.family != socket.AF_INET:
                continue
            if route.is_plain and route.interface != index:
                continue
            if route.is_plain and not enslaved:
                if gone or not flags & _UP:
                    self._beside.discard(route)
                    if self._routes.get(route.place) == route:
                        del self._routes[route.place]
            elif lost or enslaved:
                # Of several next hops some remain, and nexthop objects go with the carrier.
                self.stale = True


def _parse(octets: bytes, start: int, end: int) -> KernelDefault | None:
    """Parse a message about a route; None unless it is a default route of the main table."""
    at = start + HEADER.size
    if at + ROUTE.size > end:
        return None
    family, length, _, tos, table, *_ = ROUTE.unpack_from(octets, at)
    metric = interface = identifier = 0
    gateway = ""
    for kind, first, last in attributes(octets, at + ROUTE.size, end):
        value = octets[first:last]
        if kind == RTA_MULTIPATH:
            gateway, interface = "", 0
            break
        if kind == RTA_GATEWAY and len(value) in (4, 16):
            packed_family = socket.AF_INET if len(value) == 4 else socket.AF_INET6
            gateway = socket.inet_ntop(packed_family, value)
            continue
        if len(value) == _U32.size:
            (number,) = _U32.unpack(value)
            if kind == _RTA_OIF:
                interface = number
            elif kind == _RTA_PRIORITY:
                metric = number
            elif kind == _RTA_TABLE:
                table = number
            elif kind == _RTA_NH_ID:
                identifier = number
    if length or table != MAIN_TABLE:
        return None
    return KernelDefault(family, tos, metric, gateway, interface, identifier)
