"""One interface: a socket that solicits and advertises, and receives the neighbour's address.

Retried while the interface is missing or down. Reports a neighbour when its address changes; BGP's
own timers detect a neighbour that falls silent.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from typing import Final

from speaker.server import sockets
from speaker.server.discovery import messages

ADVERTISE_INTERVAL_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 1.0
_ALL_NODES: Final = "ff02::1"
_ALL_ROUTERS: Final = "ff02::2"
_FILTER: Final = 1
_RECVHOPLIMIT: Final = socket.IPV6_RECVHOPLIMIT
_MTU: Final = 65536


def _filter(*kinds: int) -> bytes:
    """Return an ICMP6_FILTER that passes only these types; a set bit blocks a type."""
    words = [0xFFFFFFFF] * 8
    for kind in kinds:
        words[kind >> 5] &= ~(1 << (kind & 31))
    return struct.pack("=8I", *words)


def open_socket(interface: str) -> socket.socket:
    """Create the socket of an interface. Raises OSError."""
    sock = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    try:
        sock.setblocking(False)
        sockets.bind_device(sock, interface)
        index = socket.if_nametoindex(interface)
        level = socket.IPPROTO_IPV6
        allowed = _filter(messages.ROUTER_SOLICITATION, messages.ROUTER_ADVERTISEMENT)
        sock.setsockopt(socket.IPPROTO_ICMPV6, _FILTER, allowed)
        sock.setsockopt(level, _RECVHOPLIMIT, 1)
        sock.setsockopt(level, socket.IPV6_MULTICAST_HOPS, messages.HOP_LIMIT)
        sock.setsockopt(level, socket.IPV6_UNICAST_HOPS, messages.HOP_LIMIT)
        sock.setsockopt(level, socket.IPV6_MULTICAST_IF, index)
        sock.setsockopt(level, socket.IPV6_MULTICAST_LOOP, 0)
        group = socket.inet_pton(socket.AF_INET6, _ALL_ROUTERS)
        sock.setsockopt(level, socket.IPV6_JOIN_GROUP, group + struct.pack("=I", index))
    except BaseException:
        sock.close()
        raise
    return sock


class Interface:
    """Watches one interface; `start` once, `close` once."""

    def __init__(self, name: str, on_neighbor: Callable[[str, str | None], None]) -> None:
        """``found`` is called with the interface and the neighbour's address, None when it is lost."""
        self.name = name
        self.error: str | None = None
        """Why nothing can be received at the moment."""
        self.neighbor: str | None = None
        self._found = on_neighbor
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to watch."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop, and wait for the task."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def cancel(self) -> None:
        """Stop, without waiting."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            try:
                await self._watch()
            except OSError as error:
                self.error = f"interface {self.name}: {sockets.describe(error)}"
                self._report(None)
            await asyncio.sleep(RETRY_SECONDS)

    async def _watch(self) -> None:
        """Serve one socket until it fails. Raises OSError."""
        sock = open_socket(self.name)
        loop = asyncio.get_running_loop()
        index = socket.if_nametoindex(self.name)
        loop.add_reader(sock.fileno(), self._receive, sock, index)
        try:
            self._send(sock, messages.solicitation(), _ALL_ROUTERS, index)
            while socket.if_nametoindex(self.name) == index:
                self._send(sock, messages.advertisement(), _ALL_NODES, index)
                self.error = None
                # Repeated until a neighbour answers: it may not have been up yet.
                if self.neighbor is None:
                    self._send(sock, messages.solicitation(), _ALL_ROUTERS, index)
                    await asyncio.sleep(RETRY_SECONDS)
                else:
                    await asyncio.sleep(ADVERTISE_INTERVAL_SECONDS)
            raise OSError(None, "the interface was replaced")
        finally:
            loop.remove_reader(sock.fileno())
            sock.close()

    def _send(self, sock: socket.socket, data: bytes, group: str, index: int) -> None:
        sock.sendto(data, (group, 0, 0, index))

    def _receive(self, sock: socket.socket, index: int) -> None:
        try:
            data, ancillary, _, source = sock.recvmsg(_MTU, socket.CMSG_SPACE(4))
        except OSError:
            # Sending fails too, and opens another socket.
            return
        hop_limit = next(
            (
                int.from_bytes(value[:4], "little" if _LITTLE else "big")
                for level, kind, value in ancillary
                if level == socket.IPPROTO_IPV6 and kind == socket.IPV6_HOPLIMIT
            ),
            0,
        )
        received = messages.read(data, source[0], hop_limit)
        if received is None:
            return
        if received.kind == messages.ROUTER_SOLICITATION:
            with contextlib.suppress(OSError):
                self._send(sock, messages.advertisement(), _ALL_NODES, index)
            return
        self._report(f"{received.source}%{self.name}")

    def _report(self, neighbor: str | None) -> None:
        if neighbor != self.neighbor:
            self.neighbor = neighbor
            self._found(self.name, neighbor)


_LITTLE: Final = struct.pack("=H", 1) == struct.pack("<H", 1)
