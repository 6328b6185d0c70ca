"""One TCP connection on asyncio: received octets, sent octets, and a queue whose length is reported.

Octets that a slow peer has not read wait as views of the shared buffers, never as copies. Must never
interpret a message.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, cast

from speaker.server import sockets, ttl_filter

CHUNK: Final = 256 * 1024
"""Octets handed to the transport at a time; it copies octets that the kernel does not accept."""


READ: Final = 32 * 1024
"""Octets of one read, and so the most that may wait to be processed for one connection."""
DISCARD: Final = 16 * 1024 * 1024
"""Octets that are discarded after the end; more than the buffers of two kernels hold."""


class Connection(asyncio.BufferedProtocol):
    """Calls ``made(self)``, ``received(id, octets)``, ``closed(id, reason)``, ``queued(id, n)``."""

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
        """All connections of a loop may read into one ``buffer`` of `READ` octets.

        (asyncio requests it, fills it and calls `buffer_updated` in one step.)
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
        """Done when the connection no longer exists."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over the transport (asyncio)."""
        self._transport = cast("asyncio.Transport", transport)
        self._descriptor = transport.get_extra_info("socket").fileno()
        # `pause_writing` as soon as the kernel does not accept all octets.
        self._transport.set_write_buffer_limits(0)
        self._made(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for received octets (asyncio)."""
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
        """Leave further octets in the kernel's buffer, until `resume_reading`."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Continue to read."""
        if self._transport is not None:
            self._transport.resume_reading()

    def eof_received(self) -> bool:
        """Close when the peer does: BGP has no half-open session (asyncio)."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Report the loss, unless the connection was closed from this side (asyncio)."""
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
        """Continue where the kernel stopped accepting (asyncio)."""
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
        """Octets that the kernel has not accepted."""
        buffered = self._transport.get_write_buffer_size() if self._transport else 0
        return self._waiting + buffered

    def set_ttl(self, ttl: int, min_ttl: int) -> None:
        """Set the TTL of sent packets and the least of received ones. Raises `SocketError`."""
        if self._transport is not None and not self.lost.done():
            sock = self._transport.get_extra_info("socket")
            sockets.set_ttl(sock, ttl, min_ttl)
            # From here on the option does what the listening socket's filter did.
            ttl_filter.attach(sock, None)

    @property
    def socket(self) -> sockets.HasOptions:
        """The socket, of a connection that exists."""
        assert self._transport is not None  # noqa: S101  called only while connected
        return cast("sockets.HasOptions", self._transport.get_extra_info("socket"))

    def addresses(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """Return the local address and port, and the peer's."""
        assert self._transport is not None  # noqa: S101  called only while connected
        return (
            _pair(self._transport.get_extra_info("sockname")),
            _pair(self._transport.get_extra_info("peername")),
        )

    def write(self, parts: Iterable[bytes | memoryview]) -> None:
        """Send octets; ``queued`` is called when some have to wait."""
        transport = self._transport
        if transport is None or self._closing:
            return
        for part in parts:
            if len(part) > CHUNK:
                self.write(_chunks(memoryview(part)))
            elif self._paused:
                self._queue.append(memoryview(part))
                self._waiting += len(part)
            else:
                # Nothing waits in the transport, so a direct write keeps the order, at two thirds of
                # the time. The descriptor of a closing transport may already belong to another socket.
                try:
                    sent = 0 if transport.is_closing() else os.write(self._descriptor, part)
                except OSError:
                    # The buffer is full, or the connection is lost: the transport handles both.
                    sent = 0
                if sent < len(part):
                    transport.write(part[sent:] if sent else part)
        if self._paused:
            self._queued(self.number, self.queued)

    def close(self, *, abort: bool = False) -> None:
        """Close the connection after the queued octets, or at once with ``abort``.

        Without ``abort`` it exists until the peer has closed its end as well.
        """
        self._closing = True
        # Of a lost connection the event loop has closed the socket.
        if self._transport is None or self.lost.done():
            return
        if abort:
            self._queue.clear()
            self._waiting = 0
            if not self._transport.is_closing():
                sockets.reset_if_deaf(self._transport.get_extra_info("socket"))
            self._transport.abort()
        elif self.queued == 0:
            self._end(self._transport)

    def _end(self, transport: asyncio.Transport) -> None:
        # A socket that is closed with unread octets, or receives some later, resets the connection,
        # and a peer that is sending would see the reset instead of the last NOTIFICATION (RFC 9293
        # section 3.6.1). So only the sending side is closed, and octets are read until the peer closes.
        if transport.is_closing():
            return
        try:
            transport.write_eof()
        except OSError:
            transport.abort()
            return
        transport.resume_reading()


def _chunks(octets: memoryview) -> Iterator[memoryview]:
    return (octets[start : start + CHUNK] for start in range(0, len(octets), CHUNK))


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
