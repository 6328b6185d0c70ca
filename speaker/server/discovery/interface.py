"""One interface: a socket that asks who is there, says that we are, and hears the neighbour.

Tried again for as long as the interface is missing or down. Tells a neighbour when it is another
one than before; a neighbour that falls silent is BGP's to notice, not ours.
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

INTERVAL: Final = 10.0
"""Seconds between two advertisements of ours."""
FIRST_RETRY: Final = 1.0
_ALL_NODES: Final = "ff02::1"
_ALL_ROUTERS: Final = "ff02::2"
_FILTER: Final = 1
_RECVHOPLIMIT: Final = socket.IPV6_RECVHOPLIMIT
_MTU: Final = 65536


def _filter(*kinds: int) -> bytes:
    """Return an ICMP6_FILTER that lets only these types through; a set bit blocks one."""
    words = [0xFFFFFFFF] * 8
    for kind in kinds:
        words[kind >> 5] &= ~(1 << (kind & 31))
    return struct.pack("=8I", *words)


def open_socket(interface: str) -> socket.socket:
    """Make the socket of an interface. Raises OSError."""
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

    def __init__(self, name: str, found: Callable[[str, str | None], None]) -> None:
        """``found`` is told the interface and the neighbour's address, None when it is gone."""
        self.name = name
        self.error: str | None = None
        """Why nothing can be heard at the moment."""
        self.neighbor: str | None = None
        self._found = found
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def cancel(self) -> None:
        """End without waiting."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            try:
                await self._watch()
            except OSError as error:
                self.error = f"interface {self.name}: {sockets.describe(error)}"
                self._tell(None)
            await asyncio.sleep(FIRST_RETRY)

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
                # Asked anew until somebody answers: our first word may have been too early.
                if self.neighbor is None:
                    self._send(sock, messages.solicitation(), _ALL_ROUTERS, index)
                await asyncio.sleep(FIRST_RETRY if self.neighbor is None else INTERVAL)
            raise OSError(None, "it is another one now")
        finally:
            loop.remove_reader(sock.fileno())
            sock.close()

    def _send(self, sock: socket.socket, data: bytes, group: str, index: int) -> None:
        sock.sendto(data, (group, 0, 0, index))

    def _receive(self, sock: socket.socket, index: int) -> None:
        try:
            data, ancillary, _, source = sock.recvmsg(_MTU, socket.CMSG_SPACE(4))
        except OSError:
            # The sender finds out, and opens another one.
            return
        hop_limit = next(
            (
                int.from_bytes(value[:4], "little" if _LITTLE else "big")
                for level, kind, value in ancillary
                if level == socket.IPPROTO_IPV6 and kind == socket.IPV6_HOPLIMIT
            ),
            0,
        )
        heard = messages.read(data, source[0], hop_limit)
        if heard is None:
            return
        if heard.kind == messages.ROUTER_SOLICITATION:
            with contextlib.suppress(OSError):
                self._send(sock, messages.advertisement(), _ALL_NODES, index)
            return
        self._tell(f"{heard.source}%{self.name}")

    def _tell(self, neighbor: str | None) -> None:
        if neighbor != self.neighbor:
            self.neighbor = neighbor
            self._found(self.name, neighbor)


_LITTLE: Final = struct.pack("=H", 1) == struct.pack("<H", 1)
