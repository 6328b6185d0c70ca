"""The connection of one client to the router's API: answers in order, no faster than they are read."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any, Final, Protocol, cast

import msgspec

from speaker.api import Limited
from speaker.server import SlicedReader

MAX_LINE: Final = 16 * 1024 * 1024


class Server(Protocol):
    """What a client needs of the server."""

    @property
    def reader(self) -> SlicedReader:
        """Reads answers in slices, in turn with the sessions."""
        ...

    def admit(self, client: Connection) -> bool:
        """Add a client; False if there is no room."""
        ...

    def used(self, client: Connection) -> None:
        """Note a request."""
        ...

    def remove(self, client: Connection) -> None:
        """Remove a client."""
        ...

    def answer(self, line: bytes) -> dict[str, Any] | Limited[dict[str, Any]]:
        """Answer one line; routes are still to be read."""
        ...


class Connection(asyncio.Protocol):
    """One client: each line is answered immediately; a client that does not read its answers waits."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._lines = bytearray()
        self._searched = 0
        """The number of octets that were searched for the end of a line."""
        self._writable = asyncio.Event()
        self._writable.set()
        self._sending: asyncio.Task[None] | None = None
        """The task of an answer that is sent in slices."""

    @property
    def idle(self) -> bool:
        """Whether no answer is being sent."""
        return self._sending is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the transport, if the number of clients permits (asyncio)."""
        self._transport = cast("asyncio.Transport", transport)
        if not self._server.admit(self):
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Remove the client, and end its answer (asyncio)."""
        del error
        self._server.remove(self)
        if self._sending is not None:
            self._sending.cancel()

    def data_received(self, data: bytes) -> None:
        """Answer the complete lines (asyncio)."""
        self._server.used(self)
        if self._reading and not self._lines and data.find(b"\n") + 1 == len(data):
            # Fast path for one complete request, the usual case.
            self._reply(data)
            return
        self._lines += data
        self._answer_lines()

    def pause_writing(self) -> None:
        """Stop reading while the client does not read its answers (asyncio)."""
        self._writable.clear()
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Continue with the answer, or with the requests that arrived meanwhile (asyncio)."""
        self._writable.set()
        self._continue()

    @property
    def _reading(self) -> bool:
        return self._writable.is_set() and self._sending is None

    def _continue(self) -> None:
        if self._transport is not None and not self._transport.is_closing() and self._reading:
            self._transport.resume_reading()
            self._answer_lines()

    def _answer_lines(self) -> None:
        transport = self._transport
        while transport is not None and self._reading and not transport.is_closing():
            end = self._lines.find(b"\n", self._searched)
            if end < 0:
                self._searched = len(self._lines)
                if self._searched > MAX_LINE:
                    transport.close()
                return
            line = bytes(self._lines[:end])
            del self._lines[: end + 1]
            self._searched = 0
            self._reply(line)

    def _reply(self, line: bytes) -> None:
        if self._transport is None:
            return
        answer = self._server.answer(line)
        if isinstance(answer, dict):
            self._transport.write(msgspec.json.encode(answer) + b"\n")
            return
        self._transport.pause_reading()
        self._sending = asyncio.create_task(self._send(self._transport, answer))
        self._sending.add_done_callback(self._sent)

    async def _send(self, transport: asyncio.Transport, routes: Limited[dict[str, Any]]) -> None:
        """Send the answer with routes, no faster than the client reads."""
        transport.write(b'{"ok":true,"routes":[')
        separator = b""
        async with aclosing(self._server.reader.read(iter(routes))) as slices:
            async for items in slices:
                await self._writable.wait()
                transport.write(separator + msgspec.json.encode(items)[1:-1])
                separator = b","
        transport.write(b'],"truncated":true}\n' if routes.truncated else b"]}\n")

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._sending = None
        if task.cancelled() or task.exception() is not None:
            self.close()
        else:
            self._continue()

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.abort()
