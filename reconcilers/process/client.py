"""The agent's end of the connection to a process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, cast

from reconcilers.process.codec import Codec, Greeting, ProtocolError, VersionError

M = TypeVar("M")

REFUSED: Final = "it has another agent, or is another user's: it closed the connection at once"


class ProcessClient(asyncio.Protocol, Generic[M]):
    """Sends and receives messages. One object for all connections, one at a time."""

    def __init__(self, codec: Codec[M], hello: M) -> None:
        """``hello``: the first message of each connection."""
        self._codec = codec
        self._hello = hello
        self._transport: asyncio.Transport | None = None
        self._decoder = codec.decoder()
        self._greeted = False
        self._gone = asyncio.Event()
        """Set while there is no connection."""
        self._gone.set()
        self._connected: list[Callable[[], None]] = []
        self._received: list[Callable[[Any], None]] = []
        self._lost: list[Callable[[], None]] = []
        self.version: int | None = None
        """Of the messages, once both sides have greeted."""
        self.problem = ""
        """The fault of the process or of the last connection; empty without a fault."""

    @property
    def is_connected(self) -> bool:
        """Whether the agent is connected to the process: both sides have greeted."""
        return self._greeted

    def follow(
        self,
        connected: Callable[[], None],
        received: Callable[[Any], None],
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        """Call ``connected``, ``received`` and ``lost`` for the agent's connections to the process."""
        self._connected.append(connected)
        self._received.append(received)
        self._lost.append(lost)

    def send(self, message: M) -> None:
        """Send a message to the process; without a connection it is dropped."""
        transport = self._transport
        if transport is None or not self._greeted:
            return
        octets = self._codec.encode(message)
        if not transport.get_write_buffer_size() and not transport.is_closing():
            # At once: an event loop may write at the end of its turn, which takes long at times.
            try:
                sent = os.write(transport.get_extra_info("socket").fileno(), octets)
            except OSError:
                # The buffer is full, or the connection is lost: the transport handles both.
                sent = 0
            if sent == len(octets):
                return
            octets = octets[sent:]
        transport.write(octets)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the process."""
        self._transport = cast("asyncio.Transport", transport)
        self._gone.clear()
        self._decoder = self._codec.decoder()
        self._transport.write(self._codec.encode(self._hello))

    def data_received(self, data: bytes) -> None:
        """Pass messages of the process on; what is no message ends the connection."""
        try:
            for message in self._decoder.feed(data):
                if self._transport is None:
                    return
                if isinstance(message, type(self._hello)):
                    self._greet(cast("Greeting", message))
                elif self._greeted:
                    self._pass_on(message)
        except (ProtocolError, VersionError) as error:
            self.problem = str(error)
            if self._transport is not None:
                self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection to the process."""
        if exc is not None:
            self.problem = f"the connection to the process failed: {exc}"
        elif not self._greeted and not self.problem:
            self.problem = REFUSED
        self._transport = None
        self._greeted = False
        self._gone.set()
        self.version = None
        for lost in self._lost:
            lost()

    async def disconnected(self) -> None:
        """Return once the agent has no connection to the process."""
        await self._gone.wait()

    def _greet(self, hello: Greeting) -> None:
        self.version = self._codec.common_version(hello)
        self._greeted = True
        self.problem = ""
        for connected in self._connected:
            connected()

    def _pass_on(self, message: M) -> None:
        for received in self._received:
            received(message)
