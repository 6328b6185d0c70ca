"""The least program that installs what BGP peers announce: the floor of `bench.bench_fib`.

One process and one loop: sessions over IPv4, the next hop and the prefixes of each UPDATE, and one
netlink datagram for them. It selects no paths, checks nothing, and keeps the prefixes of each session.
With ``--writer`` the datagrams go to a second process that hands them to the kernel.

``python -m bench.least_router [--writer] AS ROUTER_ID PORT NEIGHBOR ...``
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import sys
import time
from collections.abc import Iterable
from typing import Final

_MARKER: Final = b"\xff" * 16
_HEADER: Final = struct.Struct("!16sHB")
_OPEN, _UPDATE, _KEEPALIVE = 1, 2, 4
_HOLD_SECONDS: Final = 90
_KEEPALIVE_SECONDS: Final = 30.0
_NEXT_HOP: Final = 3
NEW_ROUTE, CREATE_REPLACE = 24, 0x500
_DELETE_ROUTE, _REQUEST = 25, 1
_MESSAGE: Final = struct.Struct("=IHHIIBBBBBBBBI")
"""nlmsghdr and rtmsg."""
_ROUTE_SIZE: Final = _MESSAGE.size + 24
_MAIN, _BGP, _UNIVERSE, _UNICAST = 254, 186, 0, 1
DATAGRAM: Final = 500
"""Requests of a datagram."""
_ATTRIBUTE: Final = struct.Struct("=HH4s")
_DST, _GATEWAY, _PRIORITY = 1, 5, 6
_METRIC: Final = struct.pack("=I", 20)


def _message(kind: int, body: bytes = b"") -> bytes:
    return _HEADER.pack(_MARKER, _HEADER.size + len(body), kind) + body


def netlink() -> socket.socket:
    """Return a socket of rtnetlink."""
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)


def request(kind: int, flags: int, length: int, prefix: bytes, gateway: bytes) -> bytes:
    """Return a request that adds or deletes a route of the main table."""
    size = _ROUTE_SIZE if gateway else _ROUTE_SIZE - 8
    head = (size, kind, _REQUEST | flags, 0, 0)
    route = (socket.AF_INET, length, 0, 0, _MAIN, _BGP, _UNIVERSE, _UNICAST, 0)
    octets = _MESSAGE.pack(*head, *route) + _ATTRIBUTE.pack(8, _DST, prefix)
    octets += _ATTRIBUTE.pack(8, _PRIORITY, _METRIC)
    return octets + (_ATTRIBUTE.pack(8, _GATEWAY, gateway) if gateway else b"")


def _prefixes(octets: bytes) -> list[tuple[int, bytes]]:
    prefixes, at = [], 0
    while at < len(octets):
        end = at + 1 + (octets[at] + 7) // 8
        prefixes.append((octets[at], octets[at + 1 : end].ljust(4, b"\0")))
        at = end
    return prefixes


def _next_hop(attributes: bytes) -> bytes:
    at = 0
    while at < len(attributes):
        flags, kind = attributes[at : at + 2]
        size = 2 if flags & 0x10 else 1
        begin = at + 2 + size
        at = begin + int.from_bytes(attributes[at + 2 : begin], "big")
        if kind == _NEXT_HOP:
            return attributes[begin:at]
    return b""


class Router:
    """The sessions, and the kernel."""

    def __init__(self, asn: int, router_id: str, port: int, kernel: socket.socket) -> None:
        """``kernel`` takes netlink datagrams."""
        capabilities = struct.pack("!BBHBBBBI", 1, 4, 1, 0, 1, 65, 4, asn)
        body = struct.pack("!BHH4s", 4, asn, _HOLD_SECONDS, socket.inet_aton(router_id))
        parameter = bytes((2, len(capabilities))) + capabilities
        self._open = _message(_OPEN, body + bytes((len(parameter),)) + parameter)
        self._local, self._port = router_id, port
        self._kernel = kernel
        self._selector = selectors.DefaultSelector()
        self._keepalive_due: dict[socket.socket, float] = {}
        self._received: dict[socket.socket, bytearray] = {}
        self._neighbors: dict[str, socket.socket] = {}
        self._installed: dict[socket.socket, dict[tuple[int, bytes], None]] = {}

    def run(self, neighbors: list[str]) -> None:
        """Serve for ever."""
        due = 0.0
        while True:
            if time.monotonic() >= due:
                due = time.monotonic() + 1
                for neighbor in neighbors:
                    self._tend(neighbor)
            for key, _ in self._selector.select(1.0):
                self._read(key.fileobj)  # type: ignore[arg-type]

    def _tend(self, neighbor: str) -> None:
        """Keep a session alive, or try to begin it."""
        known = self._neighbors.get(neighbor)
        if known is not None:
            if time.monotonic() >= self._keepalive_due[known]:
                self._keepalive_due[known] = time.monotonic() + _KEEPALIVE_SECONDS
                with contextlib.suppress(OSError):
                    known.send(_message(_KEEPALIVE))
            return
        session = socket.socket()
        session.bind((self._local, 0))
        try:
            session.connect((neighbor, self._port))
            session.send(self._open)
        except OSError:
            session.close()
            return
        self._neighbors[neighbor] = session
        self._keepalive_due[session] = time.monotonic() + _KEEPALIVE_SECONDS
        self._received[session] = bytearray()
        self._installed[session] = {}
        self._selector.register(session, selectors.EVENT_READ)

    def _read(self, session: socket.socket) -> None:
        try:
            octets = session.recv(1 << 16)
        except OSError:
            octets = b""
        if not octets:
            self._selector.unregister(session)
            session.close()
            self._write(_DELETE_ROUTE, 0, reversed(self._installed.pop(session)), b"")
            self._neighbors = {n: s for n, s in self._neighbors.items() if s is not session}
            return
        buffer = self._received[session]
        buffer += octets
        while len(buffer) >= _HEADER.size:
            _, length, kind = _HEADER.unpack_from(buffer)
            if len(buffer) < length:
                return
            body = bytes(buffer[_HEADER.size : length])
            del buffer[:length]
            if kind == _OPEN:
                session.send(_message(_KEEPALIVE))
            elif kind == _UPDATE:
                self._update(body, self._installed[session])

    def _update(self, body: bytes, installed: dict[tuple[int, bytes], None]) -> None:
        withdrawn = 2 + int.from_bytes(body[:2], "big")
        attributes = withdrawn + 2 + int.from_bytes(body[withdrawn : withdrawn + 2], "big")
        gateway = _next_hop(body[withdrawn + 2 : attributes])
        removed, added = _prefixes(body[2:withdrawn]), _prefixes(body[attributes:])
        for prefix in removed:
            installed.pop(prefix, None)
        installed.update(dict.fromkeys(added))
        self._write(_DELETE_ROUTE, 0, removed, b"")
        self._write(NEW_ROUTE, CREATE_REPLACE, added, gateway)

    def _write(
        self, kind: int, flags: int, prefixes: Iterable[tuple[int, bytes]], gateway: bytes
    ) -> None:
        requests = [request(kind, flags, *prefix, gateway) for prefix in prefixes]
        for at in range(0, len(requests), DATAGRAM):
            self._kernel.send(b"".join(requests[at : at + DATAGRAM]))


def main() -> None:
    """Serve the neighbors for ever."""
    arguments = sys.argv[1:]
    kernel = netlink()
    if arguments[0] == "--writer":
        kernel = _writer(kernel)
        del arguments[0]
    asn, router_id, port, *neighbors = arguments
    Router(int(asn), router_id, int(port), kernel).run(neighbors)


def _writer(kernel: socket.socket) -> socket.socket:
    """Start a process that hands the kernel what it is sent; returns the socket to it."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork():
        its.close()
        return ours
    ours.close()
    while datagram := its.recv(DATAGRAM * _ROUTE_SIZE):
        kernel.send(datagram)
    os._exit(0)


if __name__ == "__main__":
    main()
