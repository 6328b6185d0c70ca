"""A way to a server on loopback that can be cut, and opened again; perhaps out of a network namespace.

What listens in a namespace is reached there under the same address and port as the server outside, so
that certificates and configurations fit. It passes octets on, and looks at none.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from types import TracebackType
from typing import Self

from tests.support.background_loop import BackgroundLoop
from tests.support.netns import Namespace
from tests.support.ports import free_port

LOOPBACK = "127.0.0.1"
LISTEN = f"""
import socket, sys
server = socket.create_server(("{LOOPBACK}", int(sys.argv[2])))
with socket.socket(fileno=int(sys.argv[1])) as channel:
    socket.send_fds(channel, [b"."], [server.fileno()])
"""
"""Run in a namespace: passes a listening socket on."""


class Relay:
    """Use it within a running loop; it is open after `open`."""

    def __init__(self, to: int, namespace: Namespace | None = None, port: int = 0) -> None:
        """``port``: where it listens, if not on a port of its own."""
        self._to = to
        self._namespace = namespace
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = port or free_port(LOOPBACK)

    async def open(self) -> None:
        """Let connections come."""
        listening = _listen(self._namespace, self.port)
        self._server = await asyncio.start_server(self._serve, sock=listening)

    async def cut(self) -> None:
        """Break all connections, and take no more."""
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await self._server.wait_closed()
        while self._writers:  # noqa: ASYNC110  each takes itself out
            await asyncio.sleep(0.002)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            back, onward = await asyncio.open_connection(LOOPBACK, self._to)
            self._writers.add(onward)
            try:
                await asyncio.gather(_pump(reader, onward), _pump(back, writer))
            finally:
                self._writers.remove(onward)
                onward.close()
        except OSError:
            pass
        finally:
            self._writers.remove(writer)
            writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while octets := await reader.read(65_536):
            writer.write(octets)
            await writer.drain()
    finally:
        writer.close()


def _listen(namespace: Namespace | None, port: int) -> socket.socket:
    """Listen on loopback; a socket stays in the namespace in which it was made."""
    if namespace is None:
        return socket.create_server((LOOPBACK, port))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        subprocess.run(
            [*namespace.command(), sys.executable, "-c", LISTEN, str(theirs.fileno()), str(port)],
            pass_fds=[theirs.fileno()],
            check=True,
        )
        _, (descriptor,), _, _ = socket.recv_fds(ours, 1, 1)
    return socket.socket(fileno=descriptor)


class BackgroundRelay:
    """The same for tests without a loop: a context manager with a thread of its own."""

    def __init__(self, to: int, namespace: Namespace) -> None:
        self._relay = Relay(to, namespace, port=to)
        self._loop = BackgroundLoop("relay")
        self._is_open = False

    def open(self) -> None:
        """Let connections come."""
        if not self._is_open:
            self._loop.do(self._relay.open())
            self._is_open = True

    def cut(self) -> None:
        """Break all connections, and take no more."""
        if self._is_open:
            self._loop.do(self._relay.cut())
            self._is_open = False

    def __enter__(self) -> Self:
        """Start the thread, and open it."""
        self._loop.__enter__()
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Cut it, and end the thread."""
        try:
            self.cut()
        finally:
            self._loop.__exit__(kind, error, trace)
