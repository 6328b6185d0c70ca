"""Listings of the kernel: its routes, and its nexthop objects.

Nearly all routes of a table differ in their destinations alone. So a listing gathers the destinations
of messages that are equal in everything else, and parses one message of each kind.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from reconcilers.kernel.writer import route_messages
from reconcilers.kernel.writer.netlink import HEADER, Kernel
from reconcilers.kernel.writer.protocol_messages import NextHopSet
from reconcilers.kernel.writer.route_messages import ObjectMessage, RouteMessage

_ATTRIBUTES: Final = HEADER.size + 20
_DESTINATION: Final = _ATTRIBUTES + 4
"""The offset of the octets of the destination: behind RTA_TABLE, the first attribute."""
_OCTETS: Final = {struct.pack("=HH", 8, 1): 4, struct.pack("=HH", 20, 1): 16}
"""How many octets RTA_DST has, by its header."""


_EMPTY: Final = frozenset({errno.ENOENT, errno.EAFNOSUPPORT, errno.EOPNOTSUPP})
"""No such table, or no such family: no routes."""


class RouteGroup(NamedTuple):
    """Routes that have everything in common but their prefixes."""

    route: RouteMessage
    """One of them."""
    next_hops: NextHopSet
    prefixes: list[bytes]


class RouteListing:
    """Gathers routes."""

    def __init__(self) -> None:
        self._prefixes: dict[bytes, list[bytes]] = {}
        """By the octets of the message without the destination's."""
        self._first: dict[bytes, bytes] = {}
        """One whole message of each kind."""

    def clear(self) -> None:
        """Forget the routes of a listing."""
        self._prefixes.clear()
        self._first.clear()

    def take(self, octets: bytes, at: int, end: int) -> None:
        """Take a message of a listing of routes."""
        first = at + _DESTINATION
        try:
            last = first + _OCTETS[octets[at + _ATTRIBUTES : first]]
        except KeyError:
            key = octets[at + HEADER.size : end]
            self._first[key] = octets[at:end]
            self._prefixes[key] = []
            return
        # With the length of the prefix and the table, which are before it.
        key = octets[at + HEADER.size : first] + octets[last:end]
        length = octets[at + HEADER.size + 1]
        prefix = octets[first - 1 : first + ((length + 7) >> 3)]
        try:
            self._prefixes[key].append(prefix)
        except KeyError:
            self._first[key] = octets[at:end]
            self._prefixes[key] = [prefix]

    def groups(self) -> Iterator[RouteGroup]:
        """Yield the routes of a listing that a table can have: no cached ones."""
        for key, prefixes in self._prefixes.items():
            octets = self._first[key]
            route = route_messages.parse_route(octets, 0, len(octets))
            if route is None:
                continue
            length = route.prefix[:1]
            yield RouteGroup(
                route,
                route_messages.next_hops(octets, route),
                [length + prefix[1:] for prefix in prefixes] or [route.prefix],
            )


class ObjectListing:
    """Gathers nexthop objects."""

    def __init__(self) -> None:
        self.objects: list[ObjectMessage] = []

    def clear(self) -> None:
        """Forget the nexthop objects of a listing."""
        self.objects.clear()

    def take(self, octets: bytes, at: int, end: int) -> None:
        """Take a message of a listing of nexthop objects."""
        self.objects.append(route_messages.parse_object(octets, at, end))


def routes(kernel: Kernel, family: int, table: int = 0, protocol: int = 0) -> Iterator[RouteGroup]:
    """List routes of the kernel; 0 is any table or protocol. Raises `OSError`."""
    listing = RouteListing()
    try:
        kernel.dump(
            route_messages.GET_ROUTE, route_messages.listing(family, table, protocol), listing
        )
    except OSError as error:
        if error.errno not in _EMPTY:
            raise
    for group in listing.groups():
        # Kernels without strict checking list all tables.
        if table in (0, group.route.table.table) and protocol in (0, group.route.protocol):
            yield group


def objects(kernel: Kernel) -> list[ObjectMessage]:
    """List the kernel's nexthop objects. Raises `OSError`: EOPNOTSUPP where it has none."""
    listing = ObjectListing()
    kernel.dump(route_messages.GET_NEXTHOP, route_messages.object_listing(), listing)
    return listing.objects
