"""The agent's end of the connection to the writer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from reconcilers.kernel.writer.protocol import (
    Decoder,
    ProtocolError,
    VersionError,
    common_version,
    encode,
)
from reconcilers.kernel.writer.values import FromWriter, Health, Hello, ToWriter


class WriterClient(asyncio.Protocol):
    """Sends and receives messages; a `KernelWriter`. One object for all connections, one at a time."""

    def __init__(self, program: str) -> None:
        """``program``: name and version, for the log of the writer."""
        self._program = program
        self._transport: asyncio.Transport | None = None
        self._decoder = Decoder()
        self._greeted = False
        self._gone = asyncio.Event()
        """Set while there is no connection."""
        self._gone.set()
        self._connected: list[Callable[[], None]] = []
        self._received: list[Callable[[FromWriter], None]] = []
        self.version: int | None = None
        """Of the messages, once both sides have greeted."""
        self.problem = ""
        """What is wrong with the writer or with the last connection; empty if nothing is."""

    def follow(self, connected: Callable[[], None], received: Callable[[FromWriter], None]) -> None:
        """Call ``connected`` for each new connection, and ``received`` for each message of it."""
        self._connected.append(connected)
        self._received.append(received)

    def send(self, message: ToWriter) -> None:
        """Send a message; without a connection it is dropped."""
        if self._transport is not None and self._greeted:
            self._transport.write(encode(message))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet."""
        self._transport = cast("asyncio.Transport", transport)
        self._gone.clear()
        self._decoder = Decoder()
        self._transport.write(encode(Hello(self._program)))

    def data_received(self, data: bytes) -> None:
        """Pass messages on; what is no message ends the connection."""
        try:
            for message in self._decoder.feed(data):
                if self._transport is None:
                    return
                if isinstance(message, Hello):
                    self._greet(message)
                elif self._greeted:
                    self._pass_on(cast("FromWriter", message))
        except (ProtocolError, VersionError) as error:
            self.problem = str(error)
            if self._transport is not None:
                self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if exc is not None:
            self.problem = f"the connection to the writer failed: {exc}"
        self._transport = None
        self._greeted = False
        self._gone.set()
        self.version = None

    async def disconnected(self) -> None:
        """Return once there is no connection."""
        await self._gone.wait()

    def _greet(self, hello: Hello) -> None:
        self.version = common_version(hello)
        self._greeted = True
        self.problem = ""
        for connected in self._connected:
            connected()

    def _pass_on(self, message: FromWriter) -> None:
        if isinstance(message, Health):
            self.problem = message.problem
        for received in self._received:
            received(message)
