"""The sockets of BFD sessions: RFC 5881 sections 4 and 5, RFC 5883 section 5.

Packets are received on ports 3784 (single hop) and 4784 (multihop), by one socket for each family and
VRF, which the kernel filters by source address and TTL. Each session sends from a socket of its own,
with a source port of 49152 or higher, a TTL of 255 and DSCP CS6.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import socket
import struct
from collections.abc import Collection, Iterator
from typing import Final

from speaker.bfd import source_filter
from speaker.bfd.engine import Origin
from speaker.bfd.session_values import SessionKey

SINGLE_HOP_PORT: Final = 3784
MULTIHOP_PORT: Final = 4784
SOURCE_PORTS: Final = range(49152, 65536)
MAX_OCTETS: Final = 128
"""Of a datagram; a control packet with SHA1 has 52."""
RECEIVE_BUFFER: Final = 1 << 20
MAX_ORIGINS: Final = 4096
"""Of one socket, twice the sessions that a node has; a neighbor chooses its source ports and TTLs."""
_MAX_DEVICE: Final = 15
"""Octets of the name of a device (IFNAMSIZ)."""
_TTL: Final = 255
_CS6: Final = 0xC0
_IP_PKTINFO: Final = 8
_IP_RECVTTL: Final = 12
_PKTINFO4: Final = struct.Struct("=I4s4s")
_PKTINFO6: Final = struct.Struct("=16sI")
_SO_MEMINFO: Final = 55
_MEMINFO: Final = struct.Struct("=9I")
"""The last of them is SK_MEMINFO_DROPS."""
_INT: Final = struct.Struct("=i")
_ANCILLARY: Final = socket.CMSG_SPACE(_PKTINFO6.size) + socket.CMSG_SPACE(_INT.size)


class Receiver:
    """A socket that receives the packets of one port, family and VRF."""

    def __init__(
        self, family: int, device: str, *, multihop: bool, beside: Collection[Receiver] = ()
    ) -> None:
        """Bind. Raises OSError: the port is in use, or the device does not exist.

        ``beside``: the receivers of the same port and family, of other VRFs.
        """
        self.family, self.device, self.multihop = family, device, multihop
        self._accepted: tuple[frozenset[str], int] | None = None
        self._interfaces: dict[int, str] = {}
        self._origins: dict[tuple[object, ...], Origin] = {}
        """By source and ancillary data: nearly all packets come from where others came from."""
        self.sock = sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            if device:
                _bind_to_device(sock, device)
            with contextlib.suppress(PermissionError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
            if family == socket.AF_INET:
                sock.setsockopt(socket.IPPROTO_IP, _IP_RECVTTL, 1)
                sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
            else:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
            # Before the port: what arrives meanwhile is filtered.
            self.accept_from(frozenset(), _TTL)
            self._bind(MULTIHOP_PORT if multihop else SINGLE_HOP_PORT, beside)
        except OSError:
            sock.close()
            raise

    def _bind(self, port: int, beside: Collection[Receiver]) -> None:
        """Bind to a port, which a socket without a VRF shares with sockets of VRFs.

        The kernel has that with SO_REUSEADDR alone, by which other programs would share the port, too:
        it is set for as long as the call takes.
        """
        try:
            self.sock.bind(("", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not beside:
                raise
        else:
            return
        sharing = [self.sock, *(receiver.sock for receiver in beside)]
        try:
            for sock in sharing:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.sock.bind(("", port))
        finally:
            for sock in sharing:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)

    def accept_from(self, addresses: frozenset[str], least_ttl: int) -> None:
        """Receive packets from these addresses only, with at least this TTL."""
        if (addresses, least_ttl) != self._accepted:
            source_filter.attach(self.sock, addresses, least_ttl)
            self._accepted = addresses, least_ttl

    def dropped(self) -> int:
        """Return how many packets the kernel has dropped: by the filter, or without room for them."""
        octets = self.sock.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
        drops: int = _MEMINFO.unpack(octets)[-1]
        return drops

    def read(self, most: int) -> Iterator[tuple[bytes, Origin]]:
        """Yield the datagrams that wait, ``most`` of them at the most."""
        receive = self.sock.recvmsg
        for _ in range(most):
            try:
                octets, ancillary, _, source = receive(MAX_OCTETS, _ANCILLARY)
            except BlockingIOError:
                return
            except OSError:
                # An ICMP error of an earlier packet; the next read has what waits behind it.
                continue
            place = (source, *ancillary)
            origin = self._origins.get(place)
            if origin is None:
                origin = self._origin(ancillary, source)
                if len(self._origins) == MAX_ORIGINS:
                    self._origins.clear()
                self._origins[place] = origin
            yield octets, origin

    def _origin(self, ancillary: list[tuple[int, int, bytes]], source: tuple[str, ...]) -> Origin:
        ttl, local, interface = 0, "", 0
        for level, kind, data in ancillary:
            if level == socket.IPPROTO_IP:
                if kind == socket.IP_TTL:
                    (ttl,) = _INT.unpack(data)
                elif kind == _IP_PKTINFO:
                    interface, _, destination = _PKTINFO4.unpack(data)
                    local = socket.inet_ntop(socket.AF_INET, destination)
            elif level == socket.IPPROTO_IPV6:
                if kind == socket.IPV6_HOPLIMIT:
                    (ttl,) = _INT.unpack(data)
                elif kind == socket.IPV6_PKTINFO:
                    destination, interface = _PKTINFO6.unpack(data)
                    local = socket.inet_ntop(socket.AF_INET6, destination)
        peer = source[0].partition("%")[0]
        device = self._name(interface) if is_link_local(peer) else self.device
        return Origin(peer, local, device, self.multihop, ttl, interface)

    def _name(self, interface: int) -> str:
        """Return the name of an interface; looked up again when `forget_names` was called."""
        name = self._interfaces.get(interface)
        if name is None:
            try:
                name = socket.if_indextoname(interface)
            except OSError:
                return ""
            self._interfaces[interface] = name
        return name

    def forget_names(self) -> None:
        """Look names of interfaces up again: one was renamed, or made anew."""
        self._interfaces.clear()
        self._origins.clear()

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()


def is_link_local(address: str) -> bool:
    """Return whether an address needs its interface."""
    return ":" in address and ipaddress.ip_address(address).is_link_local


def first_source_port(discriminator: int) -> int:
    """Return the source port that a new session tries first; its discriminator is random."""
    return SOURCE_PORTS[discriminator % len(SOURCE_PORTS)]


def sending_socket(key: SessionKey, port: int, taken: Collection[int] = ()) -> socket.socket:
    """Return a socket that sends a session's packets, connected to the neighbor.

    Its source port is ``port``, or the next free port: the caller keeps it for the next socket
    of the session (RFC 5881 section 4). ``taken``: the source ports of other sessions, which the kernel
    would give again for another local address.

    Raises OSError: the local address or the device does not exist, or no source port is free.
    """
    family = socket.AF_INET6 if ipaddress.ip_address(key.peer).version == 6 else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        if key.device:
            _bind_to_device(sock, key.device)
        if family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, _TTL)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, _CS6)
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, _TTL)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, _CS6)
        # What is sent to the source port is dropped.
        source_filter.attach(sock, ())
        _bind(sock, key, port, taken)
        destination = MULTIHOP_PORT if key.multihop else SINGLE_HOP_PORT
        sock.connect(_address(family, key.peer, destination, key.device))
    except OSError:
        sock.close()
        raise
    return sock


def source_port(sock: socket.socket) -> int:
    """Return the port that a socket sends from."""
    port: int = sock.getsockname()[1]
    return port


def _bind_to_device(sock: socket.socket, device: str) -> None:
    """Bind to an interface or VRF device. Raises OSError: it does not exist."""
    name = device.encode(errors="replace")
    if len(name) > _MAX_DEVICE or b"\0" in name:
        # The kernel would take the first octets for the name of another device.
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name)


def device_number(device: str) -> int:
    """Return the number of a device, which a device made anew under its name has not; 0 for none."""
    try:
        return socket.if_nametoindex(device)
    except (OSError, ValueError):
        return 0


def _bind(sock: socket.socket, key: SessionKey, first: int, taken: Collection[int]) -> None:
    """Bind to a free source port, beginning at the first one."""
    for offset in range(len(SOURCE_PORTS)):
        port = SOURCE_PORTS[(first - SOURCE_PORTS.start + offset) % len(SOURCE_PORTS)]
        if port in taken:
            continue
        try:
            sock.bind(_address(sock.family, key.local, port, key.device))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return
    raise OSError(errno.EADDRINUSE, "no source port is free")


def _address(family: int, address: str, port: int, device: str) -> tuple[str | int, ...]:
    """Return the address of a socket call; a link-local one with its interface."""
    if family == socket.AF_INET:
        return (address, port)
    scope = socket.if_nametoindex(device) if is_link_local(address) else 0
    return (address or "::", port, 0, scope)
