"""One TCP connection on asyncio: octets in, octets out, and a queue with a measure.

What a slow peer has not taken waits as views of the shared octets, never as copies. It must never
look into a message.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, cast

from speaker.server import sockets

CHUNK: Final = 256 * 1024
"""How much is handed to the transport at a time; it copies what the kernel does not take."""


READ: Final = 32 * 1024
"""Octets that are read at a time, and so how much of a connection may wait to be worked on."""
DISCARD: Final = 16 * 1024 * 1024
"""Octets that are read after the end for nothing, more than what two kernels keep on the way."""


class Connection(asyncio.BufferedProtocol):
    """Tells ``made(self)``, ``received(id, octets)``, ``closed(id, reason)``, ``queued(id, n)``."""

    __slots__ = (
        "_buffer",
        "_closed",
        "_closing",
        "_descriptor",
        "_discarded",
        "_made",
        "_paused",
        "_queue",
        "_queued",
        "_received",
        "_transport",
        "_waiting",
        "lost",
        "number",
    )

    def __init__(
        self,
        number: int,
        buffer: memoryview,
        made: Callable[[Connection], None],
        received: Callable[[int, bytes], None],
        closed: Callable[[int, str], None],
        queued: Callable[[int, int], None],
    ) -> None:
        """Begin; all connections of a loop may read into one ``buffer`` of `READ` octets.

        (asyncio asks for it, fills it and says so in one step.)
        """
        self.number = number
        self._buffer = buffer
        self._made = made
        self._received = received
        self._closed = closed
        self._queued = queued
        self._transport: asyncio.Transport | None = None
        self._descriptor = -1
        self._queue: deque[memoryview] = deque()
        self._waiting = 0
        self._paused = False
        self._closing = False
        self._discarded = 0
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the connection is gone."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over the transport (asyncio)."""
        self._transport = cast("asyncio.Transport", transport)
        self._descriptor = transport.get_extra_info("socket").fileno()
        # Told at once when the kernel does not take everything, and again when it has.
        self._transport.set_write_buffer_limits(0)
        self._made(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Give room for what has come (asyncio)."""
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass octets on (asyncio)."""
        if self._closing:
            self._discarded += nbytes
            if self._discarded > DISCARD and self._transport is not None:
                self._transport.abort()
            return
        self._received(self.number, bytes(self._buffer[:nbytes]))

    def pause_reading(self) -> None:
        """Leave what comes to the kernel, until `resume_reading`."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on reading."""
        if self._transport is not None:
            self._transport.resume_reading()

    def eof_received(self) -> bool:
        """Close when the other side does: BGP knows no half-open session (asyncio)."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the end, unless it was ours (asyncio)."""
        self._queue.clear()
        self._waiting = 0
        if not self.lost.done():
            self.lost.set_result(None)
        if not self._closing:
            self._closing = True
            reason = "closed by the peer"
            if isinstance(error, OSError):
                reason = sockets.describe(error)
            self._closed(self.number, reason)

    def pause_writing(self) -> None:
        """Queue from now on (asyncio)."""
        self._paused = True

    def resume_writing(self) -> None:
        """Go on where the kernel stopped (asyncio)."""
        self._paused = False
        transport = self._transport
        if transport is None:
            return
        while self._queue and not self._paused:
            part = self._queue.popleft()
            self._waiting -= len(part)
            transport.write(part)
        if not self._closing:
            self._queued(self.number, self.queued)
        elif not self._queue and not self._paused:
            self._end(transport)

    @property
    def queued(self) -> int:
        """Octets that the kernel has not taken."""
        buffered = self._transport.get_write_buffer_size() if self._transport else 0
        return self._waiting + buffered

    def set_ttl(self, ttl: int, min_ttl: int) -> None:
        """Limit how far packets go and come. Raises `speaker.server.sockets.SocketError`."""
        if self._transport is not None:
            sockets.set_ttl(self._transport.get_extra_info("socket"), ttl, min_ttl)

    def addresses(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """Return our address and port, and the peer's."""
        assert self._transport is not None  # noqa: S101  asked only while connected
        return (
            _pair(self._transport.get_extra_info("sockname")),
            _pair(self._transport.get_extra_info("peername")),
        )

    def write(self, parts: Iterable[bytes]) -> None:
        """Send octets; the measure is told when they have to wait."""
        transport = self._transport
        if transport is None or self._closing:
            return
        for part in parts:
            if len(part) <= CHUNK:
                self._put(transport, part)
            else:
                view = memoryview(part)
                for start in range(0, len(part), CHUNK):
                    self._put(transport, view[start : start + CHUNK])
        if self._paused:
            self._queued(self.number, self.queued)

    def _put(self, transport: asyncio.Transport, part: bytes | memoryview) -> None:
        if self._paused:
            self._queue.append(memoryview(part))
            self._waiting += len(part)
            return
        # Nothing waits in the transport, so the kernel may be asked without it, at two thirds of
        # the time. A transport that is closing may have given its descriptor to somebody else.
        try:
            sent = 0 if transport.is_closing() else os.write(self._descriptor, part)
        except OSError:
            # Too much for now, or the end: the transport knows what to do in both cases.
            sent = 0
        if sent < len(part):
            transport.write(part[sent:] if sent else part)

    def close(self, *, abort: bool = False) -> None:
        """End the connection, after what the kernel still has to take unless it is aborted.

        It is gone when the other side has closed its end as well, or when it is aborted.
        """
        self._closing = True
        if self._transport is None:
            return
        if abort:
            self._queue.clear()
            self._waiting = 0
            self._transport.abort()
        elif self.queued == 0:
            self._end(self._transport)

    def _end(self, transport: asyncio.Transport) -> None:
        # A socket that is closed with octets unread, or gets some later, resets the connection, and
        # a peer that is just sending would see that instead of our last NOTIFICATION (RFC 9293
        # section 3.6.1). So we say that we are through, and read on until the peer is, too.
        if transport.is_closing():
            return
        try:
            transport.write_eof()
        except OSError:
            transport.abort()
            return
        transport.resume_reading()


def _pair(name: tuple[str, int] | tuple[str, int, int, int] | None) -> tuple[str, int]:
    """Return address and port of a socket name, a link-local address with its zone."""
    if not name:
        return ("", 0)
    host, port, *rest = name
    scope = rest[1] if rest else 0
    if scope and "%" not in host:
        with contextlib.suppress(OSError):
            host = f"{host}%{socket.if_indextoname(scope)}"
    return (host, port)
