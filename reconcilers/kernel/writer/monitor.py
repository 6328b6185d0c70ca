"""Notifications of the kernel: routes, links, addresses and nexthop objects that others changed.

Notifications of our own changes are dropped in the kernel, by the port number of the socket that made
them. A link that goes down takes nexthop objects and IPv4 routes with it without a message about them,
so a notification about a link stands for them, too.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from reconcilers.kernel.writer import netlink, route_messages
from reconcilers.kernel.writer.netlink import Kernel
from reconcilers.kernel.writer.route_messages import RouteMessage

_SO_ATTACH_FILTER: Final = 26
_LINK, _IPV4_ADDRESS, _IPV4_ROUTE, _IPV6_ADDRESS, _IPV6_ROUTE, _NEXTHOP = 1, 5, 7, 9, 11, 32
_NEW_LINK, _DELETE_LINK, _GET_LINK, _DELETE_ADDRESS = 16, 17, 18, 21
_PORT: Final = 12
"""The offset of the port number of the socket that caused a message."""
_IFINFO: Final = struct.Struct("=BxHiII")
"""ifinfomsg: family, type, index, flags, changed flags."""
_IFLA_MASTER: Final = 10
_UP: Final = 0x1
_DATAGRAM: Final = 1 << 18
_AT_ONCE: Final = 5_000
"""Notifications that are read in one go; others wait for a batch to be written between."""


class RouteEvent(NamedTuple):
    """A route that another program, or the kernel, added or removed."""

    added: bool
    flags: int
    route: RouteMessage
    octets: bytes
    """The datagram that the route was parsed from."""


class LinkLost(NamedTuple):
    """An interface was set down, or is gone, without IPv4 routes; or it changed its master.

    An interface that lost its carrier keeps them, and loses its nexthop objects.
    """

    link: int
    has_routes: bool
    """True if it may have routes: a new master removes the routes of a VRF, not of a bridge."""


class Events(NamedTuple):
    """Notifications since the last reading."""

    in_order: list[RouteEvent | LinkLost]
    """A link that is up again at once has routes again, which are notified after its loss."""
    lost_link: bool
    lost_address: bool
    """An IPv4 address is gone, and routes that prefer it as their source, without a message."""
    objects: bool
    """A link, an address or a nexthop object changed: nexthop objects may be gone."""
    overflow: bool
    """Notifications were lost: everything has to be read again."""


class Monitor:
    """A netlink socket that receives notifications."""

    def __init__(self, kernel: Kernel) -> None:
        """``kernel``: its changes are not notified; it lists the links. Raises `OSError`."""
        groups = [_LINK, _IPV4_ADDRESS, _IPV4_ROUTE, _IPV6_ADDRESS, _IPV6_ROUTE]
        try:
            self._socket = netlink.open_socket(*groups, _NEXTHOP)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._socket = netlink.open_socket(*groups)  # before Linux 5.3
        self._socket.setblocking(False)
        _drop_own(self._socket, kernel.port)
        self._masters: dict[int, int] = {}
        """Index of an interface -> that of its bridge, bond or VRF; 0 without one."""
        kernel.dump(_GET_LINK, _IFINFO.pack(0, 0, 0, 0, 0), self)

    def clear(self) -> None:
        """Begin a listing of links for the monitor of notifications."""
        self._masters.clear()

    def take(self, octets: bytes, at: int, end: int) -> None:
        """Take a link of a listing into the monitor."""
        for _ in self._link(_NEW_LINK, octets, at, end):
            pass

    def fileno(self) -> int:
        """Return the descriptor on which the monitor waits for notifications."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the monitor's socket."""
        self._socket.close()

    def read(self) -> Events:
        """Return the notifications of the monitor, without waiting."""
        in_order: list[RouteEvent | LinkLost] = []
        lost_link = False
        lost_address = objects = overflow = False
        for _ in range(_AT_ONCE):
            try:
                octets = self._socket.recv(_DATAGRAM)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                overflow = True
                continue
            for kind, flags, at, end in netlink.messages(octets):
                if kind in (route_messages.NEW_ROUTE, route_messages.DELETE_ROUTE):
                    route = route_messages.parse_route(octets, at, end)
                    if route is not None:
                        added = kind == route_messages.NEW_ROUTE
                        in_order.append(RouteEvent(added, flags, route, octets))
                    continue
                objects = True
                if kind == _DELETE_ADDRESS and octets[at + netlink.HEADER.size] == socket.AF_INET:
                    lost_address = True
                if kind in (_NEW_LINK, _DELETE_LINK):
                    for lost in self._link(kind, octets, at, end):
                        in_order.append(lost)
                        lost_link = True
        return Events(in_order, lost_link, lost_address, objects, overflow)

    def _link(self, kind: int, octets: bytes, at: int, end: int) -> Iterator[LinkLost]:
        """Take a notification about a link; yields it if it lost its routes, or may have."""
        if at + netlink.HEADER.size + _IFINFO.size > end:
            return
        _, _, index, flags, _ = _IFINFO.unpack_from(octets, at + netlink.HEADER.size)
        start = at + netlink.HEADER.size + _IFINFO.size
        master = 0
        for attribute, first, last in netlink.attributes(octets, start, end):
            if attribute == _IFLA_MASTER and last - first == 4:
                (master,) = struct.unpack_from("=I", octets, first)
        up = kind == _NEW_LINK and bool(flags & _UP)
        before = self._masters.get(index)
        if kind == _DELETE_LINK:
            self._masters.pop(index, None)
        else:
            self._masters[index] = master
        if not up or before not in (None, master):
            yield LinkLost(index, has_routes=up)


def _drop_own(monitor: socket.socket, port: int) -> None:
    """Let the kernel drop messages with this port number (linux/filter.h)."""
    load, equal, give = 0x20, 0x15, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
    # A filter reads words in network order; the header has that of the host.
    (word,) = struct.unpack("!I", struct.pack("=I", port))
    program = ((load, 0, 0, _PORT), (equal, 0, 1, word), (give, 0, 0, 0), (give, 0, 0, 0xFFFFFFFF))
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    monitor.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_)
