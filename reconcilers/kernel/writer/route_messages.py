"""Messages about routes and nexthop objects (linux/rtnetlink.h, linux/nexthop.h).

Requests for many routes differ in their destinations alone. So the octets before and after the
destination are made once, and the requests of a datagram are one ``join`` of the destinations.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from reconcilers.kernel.writer import netlink
from reconcilers.kernel.writer.netlink import HEADER, attribute, attributes, number
from reconcilers.kernel.writer.protocol_messages import (
    BLACKHOLE,
    IPV4,
    NextHop,
    NextHopSet,
    RouteTable,
)

NEW_ROUTE, DELETE_ROUTE, GET_ROUTE = 24, 25, 26
NEW_NEXTHOP, DELETE_NEXTHOP, GET_NEXTHOP = 104, 105, 106
UNICAST, TYPE_BLACKHOLE = 1, 6
DISCARDING: Final = frozenset({6, 7, 8, 9})
"""Types without next hops: blackhole, unreachable, prohibit, throw."""

_ROUTE: Final = struct.Struct("=BBBBBBBBI")
"""rtmsg: family, destination length, source length, TOS, table, protocol, scope, type, flags."""
_NEXTHOP: Final = struct.Struct("=BBBBI")
"""nhmsg: family, scope, protocol, reserved, flags."""
_RTNEXTHOP: Final = struct.Struct("=HBBi")
"""rtnexthop: length, flags, weight - 1, interface."""
_MEMBER: Final = struct.Struct("=IBBH")
"""nexthop_grp: object, weight - 1, and two that are 0 here."""
_DST, _OIF, _GATEWAY, _PRIORITY, _METRICS, _MULTIPATH = 1, 4, 5, 6, 8, 9
_TABLE, _VIA, _NH_ID = 15, 18, 30
_NHA_ID, _NHA_GROUP, _NHA_BLACKHOLE, _NHA_OIF, _NHA_GATEWAY = 1, 2, 4, 5, 6
_RTAX_LOCK: Final = 1
_ONLINK: Final = 4
_CLONED: Final = 0x200
_U32: Final = struct.Struct("=I")

MARK: Final = 1 << 17
"""A lock of a metric that the kernel never changes, in routes without a nexthop object.

It has no effect, is in every listing, and no other program sets it: so these routes are known as ours.
"""

REQUESTS: Final = 500
"""Of a datagram."""


class RouteMessage(NamedTuple):
    """A route of the kernel, as a notification or a listing has it."""

    table: RouteTable
    prefix: bytes
    protocol: int
    type: int
    object: int
    """The nexthop object; 0 without one."""
    marked: bool
    """It has `MARK`."""
    start: int
    end: int
    """The attributes, in the datagram."""


class RouteRequests:
    """Requests for routes that have all in common but their destination."""

    def __init__(
        self, kind: int, flags: int, table: RouteTable, protocol: int, forwarding: bytes, type_: int
    ) -> None:
        """``forwarding``: attributes with the next hops, or the nexthop object."""
        self._kind = kind
        self._flags = flags | netlink.REQUEST
        self._table = table
        self._protocol = protocol
        self._type = type_
        self._tail = number(_TABLE, table.table) + number(_PRIORITY, table.metric) + forwarding
        self._octets = 4 if table.family == IPV4 else 16

    def datagrams(
        self, kernel: netlink.Kernel, prefixes: Iterable[bytes]
    ) -> Iterator[tuple[bytes, int]]:
        """Pack route messages for these prefixes: datagrams, and each one's number of requests."""
        by_length: dict[int, list[bytes]] = {}
        for prefix in prefixes:
            try:
                by_length[prefix[0]].append(prefix)
            except KeyError:
                by_length[prefix[0]] = [prefix]
        for length, same in by_length.items():
            used = (length + 7) >> 3
            padding = bytes(self._octets - used)
            for at in range(0, len(same), REQUESTS):
                some = [prefix[1:] for prefix in same[at : at + REQUESTS]]
                sequence = kernel.next_sequence()
                head = self._head(length, sequence, 0)
                tail = padding + self._tail
                *others, last = some
                packed = [self._head(length, sequence, netlink.ACK), last, tail]
                if others:
                    packed = [head, (tail + head).join(others), tail, *packed]
                yield b"".join(packed), len(some)

    def _head(self, length: int, sequence: int, flags: int) -> bytes:
        """Return what is before the destination's octets."""
        size = HEADER.size + _ROUTE.size + 4 + self._octets + len(self._tail)
        table = self._table
        return (
            HEADER.pack(size, self._kind, self._flags | flags, sequence, 0)
            + _ROUTE.pack(
                table.family,
                length,
                0,
                0,
                table.table if table.table < 256 else 0,
                self._protocol,
                0,
                self._type,
                0,
            )
            + netlink.ATTRIBUTE.pack(4 + self._octets, _DST)
        )


def by_object(identifier: int) -> bytes:
    """Return the attribute of messages about routes that use a nexthop object."""
    return number(_NH_ID, identifier)


def type_of(next_hops: NextHopSet) -> int:
    """Return the type in messages about routes that carry these next hops themselves."""
    return TYPE_BLACKHOLE if next_hops == BLACKHOLE else UNICAST


def by_next_hops(next_hops: NextHopSet, family: int) -> bytes:
    """Return the attributes of messages about routes with their own next hops, and `MARK`."""
    mark = attribute(_METRICS, number(_RTAX_LOCK, MARK))
    if next_hops == BLACKHOLE:
        return mark
    if len(next_hops) == 1 and not next_hops[0].onlink:
        (hop,) = next_hops
        return mark + number(_OIF, hop.interface) + _gateway(hop, family)
    packed = []
    for hop in next_hops:
        inner = _gateway(hop, family)
        flags = _ONLINK if hop.onlink else 0
        size = _RTNEXTHOP.size + len(inner)
        packed.append(_RTNEXTHOP.pack(size, flags, hop.weight - 1, hop.interface) + inner)
    return mark + attribute(_MULTIPATH, b"".join(packed))


def _gateway(hop: NextHop, family: int) -> bytes:
    if not hop.gateway:
        return b""
    if len(hop.gateway) == 16 and family == IPV4:
        return attribute(_VIA, struct.pack("=H", socket.AF_INET6) + hop.gateway)
    return attribute(_GATEWAY, hop.gateway)


def destination(request: bytes) -> bytes:
    """Return the prefix, in wire form, of a route message that `RouteRequests` made."""
    length = request[HEADER.size + 1]
    at = HEADER.size + _ROUTE.size + 4
    return bytes((length,)) + request[at : at + ((length + 7) >> 3)]


def listing(family: int, table: int, protocol: int) -> bytes:
    """Return the body of a route message that requests a listing; 0 is any table or protocol."""
    octet = table if table < 256 else 0
    body = _ROUTE.pack(family, 0, 0, 0, octet, protocol, 0, 0, 0)
    return body + (number(_TABLE, table) if table else b"")


def parse_route(octets: bytes, at: int, end: int) -> RouteMessage | None:
    """Parse a route message with its header; None for a cached one, or of another family."""
    family, length, _, tos, table, protocol, _, type_, flags = _ROUTE.unpack_from(octets, at + 16)
    if flags & _CLONED or tos or family not in (2, 10):
        return None
    start = at = at + HEADER.size + _ROUTE.size
    used = (length + 7) >> 3
    prefix = bytes((length,))
    metric = identifier = 0
    marked = False
    while at + 4 <= end:
        size, kind = netlink.ATTRIBUTE.unpack_from(octets, at)
        if size < 4:
            break
        if kind == _DST:
            prefix += octets[at + 4 : at + 4 + used]
        elif kind == _TABLE:
            (table,) = _U32.unpack_from(octets, at + 4)
        elif kind == _PRIORITY:
            (metric,) = _U32.unpack_from(octets, at + 4)
        elif kind == _NH_ID:
            (identifier,) = _U32.unpack_from(octets, at + 4)
        elif kind == _METRICS:
            marked = _is_marked(octets, at + 4, at + size)
        at += (size + 3) & ~3
    if len(prefix) != 1 + used:
        return None
    key = RouteTable(table, family, metric)
    return RouteMessage(key, prefix, protocol, type_, identifier, marked, start, end)


def _is_marked(octets: bytes, at: int, end: int) -> bool:
    return any(
        kind == _RTAX_LOCK and last - first == 4 and bool(_U32.unpack_from(octets, first)[0] & MARK)
        for kind, first, last in attributes(octets, at, end)
    )


def next_hops(octets: bytes, route: RouteMessage) -> NextHopSet:
    """Return the next hops of a parsed route message, shown beside a nexthop object, too."""
    if route.type in DISCARDING:
        return BLACKHOLE
    hops: list[NextHop] = []
    gateway, interface = b"", 0
    for kind, first, last in attributes(octets, route.start, route.end):
        if kind == _MULTIPATH:
            hops += _multipath(octets, first, last)
        elif kind == _OIF and last - first == 4:
            (interface,) = _U32.unpack_from(octets, first)
        elif kind in (_GATEWAY, _VIA):
            gateway = octets[first + (2 if kind == _VIA else 0) : last]
    if not hops:
        (flags,) = _U32.unpack_from(octets, route.start - 4)
        hops = [NextHop(gateway, interface, onlink=bool(flags & _ONLINK))]
    return tuple(sorted(set(hops)))


def _multipath(octets: bytes, at: int, end: int) -> Iterator[NextHop]:
    while at + _RTNEXTHOP.size <= end:
        size, flags, weight, interface = _RTNEXTHOP.unpack_from(octets, at)
        if size < _RTNEXTHOP.size:
            return
        gateway = b""
        for kind, first, last in attributes(octets, at + _RTNEXTHOP.size, min(at + size, end)):
            if kind in (_GATEWAY, _VIA):
                gateway = octets[first + (2 if kind == _VIA else 0) : last]
        yield NextHop(gateway, interface, bool(flags & _ONLINK), weight + 1)
        at += (size + 3) & ~3


# Nexthop objects


class ObjectMessage(NamedTuple):
    """A nexthop object of the kernel."""

    id: int
    protocol: int
    family: int
    hop: NextHop | None
    """None for a group; a blackhole is the next hop of `BLACKHOLE`."""
    members: tuple[tuple[int, int], ...]
    """The objects of a group, each with its weight."""


def hop_object(identifier: int, protocol: int, family: int, hop: NextHop) -> bytes:
    """Return the body of a message that creates a next hop's object; its weight is a group's."""
    body = _NEXTHOP.pack(family, 0, protocol, 0, _ONLINK if hop.onlink else 0)
    body += number(_NHA_ID, identifier)
    if (hop,) == BLACKHOLE:
        return body + attribute(_NHA_BLACKHOLE, b"")
    body += number(_NHA_OIF, hop.interface)
    return body + (attribute(_NHA_GATEWAY, hop.gateway) if hop.gateway else b"")


def group_object(identifier: int, protocol: int, members: Iterable[tuple[int, int]]) -> bytes:
    """Return the body of a message that creates or replaces a group of objects with weights."""
    packed = b"".join(_MEMBER.pack(member, weight - 1, 0, 0) for member, weight in members)
    return (
        _NEXTHOP.pack(0, 0, protocol, 0, 0)
        + number(_NHA_ID, identifier)
        + attribute(_NHA_GROUP, packed)
    )


def object_removal(identifier: int) -> bytes:
    """Return the body of a message that removes an object, with all routes that use it."""
    return _NEXTHOP.pack(0, 0, 0, 0, 0) + number(_NHA_ID, identifier)


def object_listing() -> bytes:
    """Return the body of a message that requests all nexthop objects."""
    return _NEXTHOP.pack(0, 0, 0, 0, 0)


def parse_object(octets: bytes, at: int, end: int) -> ObjectMessage:
    """Parse a message about a nexthop object, with its header."""
    family, _, protocol, _, flags = _NEXTHOP.unpack_from(octets, at + HEADER.size)
    identifier, gateway, interface = 0, b"", 0
    blackhole = False
    members: tuple[tuple[int, int], ...] = ()
    for kind, first, last in attributes(octets, at + HEADER.size + _NEXTHOP.size, end):
        if kind == _NHA_ID:
            (identifier,) = _U32.unpack_from(octets, first)
        elif kind == _NHA_GROUP:
            whole = last - (last - first) % _MEMBER.size
            unpacked = _MEMBER.iter_unpack(octets[first:whole])
            members = tuple((member, weight + 1) for member, weight, *_ in unpacked)
        elif kind == _NHA_BLACKHOLE:
            blackhole = True
        elif kind == _NHA_OIF:
            (interface,) = _U32.unpack_from(octets, first)
        elif kind == _NHA_GATEWAY:
            gateway = octets[first:last]
    hop: NextHop | None = None
    if blackhole:
        (hop,) = BLACKHOLE
    elif not members:
        hop = NextHop(gateway, interface, bool(flags & _ONLINK))
    return ObjectMessage(identifier, protocol, family, hop, members)
