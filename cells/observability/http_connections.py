"""The limits of HTTP connections: their number, and the time for a request and for its answer.

A client that sends half a request, or does not read its answer, must not hold a connection for ever. A
connection to an address serves one request: probes and scrapes come seconds apart. A connection to the
Unix socket may serve many, without a limit of time: a controller keeps it open, and a stream has no
end. It makes room for a new one while it is idle, or while its client does not read.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final, cast

MAX_CONNECTIONS: Final = 64
"""A new connection beyond this takes the place of the oldest one without a complete request, or else
of the oldest with a client that has not read for `STALLED_SECONDS`. What waits for the server stays."""
STALLED_SECONDS: Final = 5.0
REQUEST_SECONDS: Final = 5.0
"""From the start of a connection to the end of its request."""
ANSWER_SECONDS: Final = 30.0
"""From the end of the request until the client has received the answer."""
LATE_SECONDS: Final = 1.0
"""A limit that is noticed so late lasts for as long again: the process did not run meanwhile, and what
has come is read before a client is disconnected."""


def _is_fault(record: logging.LogRecord) -> bool:
    """Whether a record of the HTTP library is of a fault, and not of a malformed request."""
    error = record.exc_info[1] if record.exc_info else None
    # By name: a direct action that fails is logged where the library is not imported.
    return all(kind.__name__ != "HttpProcessingError" for kind in type(error).__mro__)


# Any client could fill the log: each malformed request is a traceback of the library.
server_log: Final = logging.getLogger("aiohttp.server")
server_log.addFilter(_is_fault)

_END_OF_HEAD: Final = b"\r\n\r\n"
Direct = Callable[[bytes], bytes | None]
Server = Callable[[], asyncio.Protocol | None]
"""Returns the protocol of one more connection; None while the server is imported."""


async def close_server(server: asyncio.Server) -> None:
    """Close the listening sockets of a server, after the accepted connections are known to it.

    asyncio refuses a connection whose server is closed between its acceptance and its first step, and
    leaves its socket to the garbage collector.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    await asyncio.sleep(0)
    server.close()
    # uvloop begins a connection in the turn after its acceptance.
    await asyncio.sleep(0)


class Connections:
    """The connections of one server."""

    def __init__(self, direct: Direct | None = None, *, timed: bool = True) -> None:
        """Without ``timed`` a request and an answer may take any time.

        ``direct`` answers octets that are one whole request; with None the server gets the connection,
        and after an empty answer ``direct`` gets these octets again, with the next ones.
        """
        self.direct = direct
        self.timed = timed
        self._open: dict[_Connection, None] = {}
        """The oldest first."""
        self._served: dict[object, _Connection] = {}
        """By the server's protocol."""

    def __len__(self) -> int:
        """Return the number of connections."""
        return len(self._open)

    def new(self, server: Server) -> asyncio.Protocol:
        """Return the protocol of a new connection, for `loop.create_server`.

        ``server`` returns the guarded server, an `aiohttp.web.Server`. If it returns None, the
        connection waits for `serve_waiting`.
        """
        return _Connection(self, server)

    def serve_waiting(self) -> None:
        """Pass on what has come while there was no server."""
        for connection in [*self._open]:
            connection.serve_waiting()

    def end_waiting(self, answer: bytes) -> None:
        """Answer the connections that wait for a server, and end them."""
        for connection in [*self._open]:
            if connection.unread:
                connection.end(answer)

    def close(self) -> None:
        """End the connections that no server has."""
        for connection in [*self._open]:
            if connection.inner is None:
                connection.abort()

    def requested(self, protocol: object) -> None:
        """Note that the request of a connection is complete."""
        connection = self._served.get(protocol)
        if connection is not None:
            connection.answer()

    def answered(self, protocol: object) -> None:
        """Note that a connection waits for its next request."""
        connection = self._served.get(protocol)
        if connection is not None:
            connection.answering = False

    def opened(self, connection: _Connection) -> bool:
        """Add a connection; False where there is no room for it."""
        if len(self._open) >= MAX_CONNECTIONS:
            waiting = (item for item in self._open if not item.has_request())
            stalled = (item for item in self._open if item.is_stalled())
            ended = next(waiting, None) or next(stalled, None)
            if ended is None:
                return False
            self.closed(ended)
            ended.abort()
        self._open[connection] = None
        return True

    def served(self, connection: _Connection) -> None:
        """Note the server's protocol of a connection."""
        self._served[connection.inner] = connection

    def closed(self, connection: _Connection) -> None:
        """Remove a connection."""
        self._open.pop(connection, None)
        self._served.pop(connection.inner, None)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _give_up_after(sock: socket.socket | None, seconds: float) -> None:
    """Let the kernel end a connection whose peer acknowledges nothing for so long (RFC 5482).

    A client that is gone without a FIN has a stream for a quarter of an hour otherwise: what is sent to
    it fits into the buffer of the socket.
    """
    if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        milliseconds = int(seconds * 1000)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)


class _Connection(asyncio.Protocol):
    """One connection: passes everything on to the server's protocol, and ends what takes too long."""

    def __init__(self, connections: Connections, server: Server) -> None:
        self._connections = connections
        self._server = server
        self.inner: asyncio.Protocol | None = None
        """The server's; none before it has had octets, where requests are answered directly."""
        self.unread = b""
        """Octets that have come while there was no server."""
        self._head = b""
        """Octets that are answered with the next ones."""
        self._direct = connections.direct
        """None once the server has had a part of a request, or the client does not read."""
        self.answering = False
        """Whether the request is complete."""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._paused_at: float | None = None
        """Since when the client does not read."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start with the limit for the request (asyncio)."""
        self._transport = cast("asyncio.Transport", transport)
        _give_up_after(transport.get_extra_info("socket"), ANSWER_SECONDS)
        if self._direct is None:
            self._begin()
        if self._connections.opened(self):
            self._end_after(REQUEST_SECONDS)
        else:
            self.abort()

    def has_request(self) -> bool:
        """Return whether a request is complete, or its head while there is no server."""
        return self.answering or _END_OF_HEAD in self.unread

    def answer(self) -> None:
        """Start with the limit for the answer."""
        self.answering = True
        self._end_after(ANSWER_SECONDS)

    def data_received(self, data: bytes) -> None:
        """Answer, or pass on (asyncio)."""
        if self._head:
            data, self._head = self._head + data, b""
        if self._direct is not None and self._paused_at is None and self._transport is not None:
            answer = self._direct(data)
            if answer:
                self._transport.write(answer)
                return
            if answer is not None:
                self._head = data
                return
        self._direct = None
        inner = self.inner or self._begin()
        if inner is not None:
            self._pass_on(inner, data)
        elif self._transport is not None:
            self.unread += data
            self._transport.pause_reading()

    def serve_waiting(self) -> None:
        """Pass on what has come while there was no server."""
        inner = self._begin() if self.unread else None
        if inner is not None and self._transport is not None:
            unread, self.unread = self.unread, b""
            self._transport.resume_reading()
            self._pass_on(inner, unread)

    def _pass_on(self, inner: asyncio.Protocol, data: bytes) -> None:
        try:
            inner.data_received(data)
        except Exception as error:  # noqa: BLE001  such as an IndexError for GET http://[::1]@
            # Without the traceback, for which any client could ask; the other connections go on.
            server_log.error("a request ends its connection: %s: %s", type(error).__name__, error)
            self.abort()

    def _begin(self) -> asyncio.Protocol | None:
        """Give the connection to the server; returns its protocol, or None if there is none."""
        inner = self._server()
        if inner is None or self._transport is None:
            return None
        self.inner = inner
        self._connections.served(self)
        inner.connection_made(self._transport)
        if self._paused_at is not None:
            inner.pause_writing()
        return inner

    def eof_received(self) -> bool | None:
        """Pass on (asyncio); without a server, the client has what it asked for."""
        return None if self.inner is None else self.inner.eof_received()

    def is_stalled(self) -> bool:
        """Return whether the client has not read for long."""
        paused = self._paused_at
        return paused is not None and _now() - paused >= STALLED_SECONDS

    def pause_writing(self) -> None:
        """Pass on (asyncio)."""
        self._paused_at = _now()
        if self.inner is not None:
            self.inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on (asyncio)."""
        self._paused_at = None
        if self.inner is not None:
            self.inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        """Remove the connection (asyncio)."""
        self._connections.closed(self)
        if self._timer is not None:
            self._timer.cancel()
        if self.inner is not None:
            self.inner.connection_lost(error)

    def end(self, answer: bytes) -> None:
        """Answer without a server, and end the connection once the client has read that."""
        self.unread = b""
        if self._transport is not None:
            self._transport.write(answer)
            self._transport.close()

    def abort(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.abort()

    def _end_after(self, seconds: float) -> None:
        if not self._connections.timed:
            return
        if self._timer is not None:
            self._timer.cancel()
        due = _now() + seconds
        self._timer = asyncio.get_running_loop().call_at(due, self._end, due)

    def _end(self, due: float) -> None:
        if _now() < due + LATE_SECONDS:
            self.abort()
        else:
            self._end_after(LATE_SECONDS)
