"""Some routes of the kernel, kept by its notifications. Pure.

A table with as many routes as the Internet is read once, and again only if notifications were lost or
leave open what remains. Links that flap cost no reading: a link that is set down takes its IPv4 routes
without a message, IPv6 routes are reported.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from resources.host.route_messages import (
    DELETE_ROUTE,
    HEADER,
    NEW_ROUTE,
    ROUTE,
    RTA_GATEWAY,
    RTA_MULTIPATH,
    RTA_TABLE,
    attributes,
    messages,
)

_REPLACE: Final = 0x100
_NEW_LINK, _DELETE_LINK, _DELETE_ADDRESS, _DELETE_NEXT_HOP = 16, 17, 21, 105
_RTA_DST, _RTA_OIF, _RTA_PRIORITY, _RTA_NH_ID = 1, 4, 6, 30
_IFLA_MASTER: Final = 10
_CLONED: Final = 0x200
_LINK: Final = struct.Struct("=BxHiII")
"""ifinfomsg: family, type, index, flags, changed flags."""
_UP, _LOWER_UP = 0x1, 0x10000
_U32: Final = struct.Struct("=I")
_DISCARDING: Final = frozenset((6, 7, 8))
"""RTN_BLACKHOLE, UNREACHABLE, PROHIBIT: routes that no link takes along."""


Place: TypeAlias = tuple[object, ...]
"""Routes of one place replace each other, or stand beside each other."""


class FollowedRoute(NamedTuple):
    """A route of the kernel, with the interface and the nexthop object whose removal removes it."""

    family: int
    table: int
    length: int
    prefix: bytes
    tos: int
    metric: int
    protocol: int
    type: int
    cloned: bool
    """True for an entry of a cache."""
    gateway: str
    """Empty without one of the route's own family, and for a route with several next hops."""
    interface: int
    """Index; 0 for a route with several next hops, or none."""
    object: int
    """The nexthop object; 0 without one."""

    @property
    def place(self) -> Place:
        """The family, table, prefix, TOS and metric of a followed kernel route."""
        return self[:6]

    @property
    def is_plain(self) -> bool:
        """True for a followed route with one next hop of its own, or that discards packets."""
        return not self.object and (bool(self.interface) or self.type in _DISCARDING)


class FollowedRoutes:
    """The routes that a predicate selects, as the kernel has them, as far as it notifies."""

    def __init__(self, is_wanted: Callable[[FollowedRoute], bool]) -> None:
        self._is_wanted = is_wanted
        self.stale = True
        """True if the table has to be read: `begin` and `load`."""
        self._routes: dict[Place, FollowedRoute] = {}
        self._beside: dict[Place, set[FollowedRoute]] = {}
        """Further routes of the same places."""
        self._masters: dict[int, int] = {}
        self._since: list[bytes] | None = None
        """Notifications since a reading of the table began; None if none is going on."""

    def routes(self) -> tuple[FollowedRoute, ...]:
        """Return the followed routes, as the kernel's notifications leave them."""
        beside = (route for routes in self._beside.values() for route in routes)
        return (*self._routes.values(), *beside)

    def begin(self) -> None:
        """Keep notifications from here on: the table of the followed routes is about to be read."""
        self.stale = False
        self._since = []

    def load(self, read: Iterable[FollowedRoute]) -> None:
        """Take the followed routes from the routes of a table that was read."""
        self._routes.clear()
        self._beside.clear()
        for route in filter(self._is_wanted, read):
            if self._routes.setdefault(route.place, route) != route:
                self._beside.setdefault(route.place, set()).add(route)
        since, self._since = self._since or (), None
        for datagram in since:
            self.notified(datagram)

    def notified(self, datagram: bytes) -> None:
        """Update the followed routes by notifications of routes, links, addresses, nexthops."""
        if self._since is not None:
            self._since.append(datagram)
            return
        for kind, flags, start in messages(datagram):
            (length, *_) = HEADER.unpack_from(datagram, start)
            end = min(start + length, len(datagram))
            if kind in (NEW_ROUTE, DELETE_ROUTE):
                route = parse_route(datagram, start, end)
                if route is not None:
                    self._route(route, flags, added=kind == NEW_ROUTE)
            elif kind in (_NEW_LINK, _DELETE_LINK):
                self._link(datagram, start, end, gone=kind == _DELETE_LINK)
            elif kind == _DELETE_ADDRESS and datagram[start + HEADER.size] == socket.AF_INET:
                # Routes that prefer it as their source go with it, or all of the interface.
                self.stale = self.stale or any(r.family == socket.AF_INET for r in self.routes())
            elif kind == _DELETE_NEXT_HOP:
                self.stale = self.stale or any(route.object for route in self.routes())

    def _route(self, route: FollowedRoute, flags: int, *, added: bool) -> None:
        known = self._routes.get(route.place)
        if not self._is_wanted(route):
            # In the place of a selected route, or beside it.
            self.stale = self.stale or (added and known is not None)
        elif route.place in self._beside:
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
        if not lost and not enslaved:
            return
        for route in self.routes():
            if route.family != socket.AF_INET:
                continue
            if route.is_plain and route.interface != index:
                continue
            if route.is_plain and not enslaved:
                if gone or not flags & _UP:
                    self._discard(route)
            else:
                # Of several next hops some remain, and nexthop objects go with the carrier.
                self.stale = True

    def _discard(self, route: FollowedRoute) -> None:
        beside = self._beside.get(route.place)
        if beside is not None and route in beside:
            beside.remove(route)
            if not beside:
                del self._beside[route.place]
        elif self._routes.get(route.place) == route:
            del self._routes[route.place]


def parse_route(octets: bytes, start: int, end: int) -> FollowedRoute | None:
    """Parse a netlink message to a followed route; None if it is too short."""
    at = start + HEADER.size
    if at + ROUTE.size > end:
        return None
    family, length, _, tos, table, protocol, _, type_, flags = ROUTE.unpack_from(octets, at)
    metric = interface = identifier = 0
    gateway, several = "", False
    prefix = bytes(4 if family == socket.AF_INET else 16)
    for kind, first, last in attributes(octets, at + ROUTE.size, end):
        value = octets[first:last]
        if kind == _RTA_DST:
            prefix = value
        elif kind == RTA_GATEWAY and len(value) in (4, 16):
            packed_family = socket.AF_INET if len(value) == 4 else socket.AF_INET6
            gateway = socket.inet_ntop(packed_family, value)
        elif kind == RTA_MULTIPATH:
            several = True
        elif len(value) == _U32.size:
            (number,) = _U32.unpack(value)
            if kind == _RTA_OIF:
                interface = number
            elif kind == _RTA_PRIORITY:
                metric = number
            elif kind == RTA_TABLE:
                table = number
            elif kind == _RTA_NH_ID:
                identifier = number
    cloned = bool(flags & _CLONED)
    if several:
        gateway, interface = "", 0
    place = (family, table, length, prefix, tos, metric)
    return FollowedRoute(*place, protocol, type_, cloned, gateway, interface, identifier)
