"""Bounds of a listener of the page: connections, time for a request and an answer, streams.

A client that is slow to ask or to read is disconnected (`cells.observability.http_connections`); a
stream goes on as long as it is read.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import Callable, Collection
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from cells.observability.http_connections import Connections, close_server
from cells.page.handshake import TlsListener

MOST_STREAMS: Final = 16
"""Pages that follow the agent at once; the connections beyond these stay free for what they read."""
RENEW_SECONDS: Final = 5.0


class BoundedListener:
    """The connections of one listener."""

    def __init__(self, streams: Collection[str]) -> None:
        """``streams`` are the paths whose answers last."""
        self.connections = Connections()
        self.handshakes: TlsListener | None = None
        """With TLS."""
        self._streams = streams
        self._open = 0
        self._server: asyncio.Server | None = None

    async def listen(
        self,
        inner: Callable[[], asyncio.Protocol],
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
    ) -> tuple[str, int]:
        """Listen; return address and port. Raises `OSError`."""
        new = functools.partial(self.connections.new, inner)
        if tls is not None:
            self.handshakes = TlsListener(tls, new)
            return await self.handshakes.listen(host, port)
        self._server = await asyncio.get_running_loop().create_server(new, host, port)
        name = self._server.sockets[0].getsockname()
        return name[0], name[1]

    async def close(self) -> None:
        """Accept no more connections."""
        if self._server is not None:
            await close_server(self._server)
        if self.handshakes is not None:
            self.handshakes.close()

    @web.middleware
    async def once(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer the one request of a connection; the first middleware of an application."""
        try:
            response = await handler(request)
        except ConnectionError:
            # The client has left, or was disconnected: no fault that belongs into the log.
            response = web.Response(status=400)
        finally:
            request.protocol.close()  # also after the answer for a path that does not exist
        response.force_close()
        return response

    @web.middleware
    async def admitted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Give a request that was admitted the time of an answer, or of a stream.

        Every other request ends with the time of a request, and makes room for new connections.
        """
        self.connections.requested(request.protocol)
        if request.path not in self._streams:
            return await handler(request)
        if self._open >= MOST_STREAMS:
            text = "too many pages follow this agent\n"
            return web.Response(status=503, text=text, headers={"Retry-After": "30"})
        self._open += 1
        renewal = asyncio.create_task(self._renew(request))
        try:
            return await handler(request)
        finally:
            self._open -= 1
            renewal.cancel()

    async def _renew(self, request: web.Request) -> None:
        """Extend the time of a stream while the client takes what it is sent."""
        while (transport := request.transport) is not None:
            await asyncio.sleep(RENEW_SECONDS)
            if not transport.get_write_buffer_size():
                self.connections.requested(request.protocol)
