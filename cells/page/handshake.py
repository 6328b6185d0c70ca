"""TLS handshakes of a listener, bounded in number and time.

A server of asyncio makes a connection known when its handshake has ended; until then each that a client
opens holds a descriptor, of which the BGP sessions need some, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Final

MOST_HANDSHAKES: Final = 64
"""A new one beyond this takes the place of the oldest."""
HANDSHAKE_SECONDS: Final = 5.0
AGAIN_SECONDS: Final = 0.5
"""After a connection that cannot be accepted, as there is no descriptor."""
BACKLOG: Final = 100


class TlsListener:
    """The sockets of one address, and the handshakes of their connections."""

    def __init__(self, tls: ssl.SSLContext, inner: Callable[[], asyncio.Protocol]) -> None:
        """``inner`` returns the protocol of a connection."""
        self._tls = tls
        self._inner = inner
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._handshakes: dict[asyncio.Task[None], None] = {}

    def __len__(self) -> int:
        """Return the number of handshakes."""
        return len(self._handshakes)

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Listen on the addresses of a host; return the first, with its port. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        try:
            for family, _, _, _, address in dict.fromkeys(infos):
                listening = socket.create_server(address, family=family, backlog=BACKLOG)
                listening.setblocking(False)
                self._sockets.append(listening)
        except OSError:
            self.close()
            raise
        self._accepting = [loop.create_task(self._accept(of)) for of in self._sockets]
        name = self._sockets[0].getsockname()
        return name[0], name[1]

    def close(self) -> None:
        """Accept no more connections, and end the handshakes."""
        for task in (*self._accepting, *self._handshakes):
            task.cancel()
        for listening in self._sockets:
            listening.close()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listening)
            except OSError:
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            if len(self._handshakes) >= MOST_HANDSHAKES:
                oldest = next(iter(self._handshakes))
                del self._handshakes[oldest]
                oldest.cancel()
            task = loop.create_task(self._shake(sock))
            self._handshakes[task] = None
            task.add_done_callback(lambda done: self._handshakes.pop(done, None))
            # From its first step on the task closes the socket; and sessions come in between.
            await asyncio.sleep(0)

    async def _shake(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError):  # what a client does wrong belongs into no log
            await asyncio.get_running_loop().connect_accepted_socket(
                self._inner, sock, ssl=self._tls, ssl_handshake_timeout=HANDSHAKE_SECONDS
            )
