"""The end of a server's listening sockets, and limits that a process notices late.

The others are in `test_http` and `tests.cells.page`.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast

from cells.observability.http_connections import (
    ANSWER_SECONDS,
    LATE_SECONDS,
    REQUEST_SECONDS,
    Connections,
    close_server,
)
from tests.support import looptime


def test_a_connection_that_is_accepted_as_the_server_closes_is_served() -> None:
    class Server(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made.append(transport)

    made: list[asyncio.BaseTransport] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Server, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        with socket.create_connection(address):
            # Its acceptance is a task of the event loop now, which has not begun.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await close_server(server)
            await asyncio.sleep(0)
            assert len(made) == 1
            made[0].close()
        assert not server.is_serving()
        await asyncio.sleep(0)

    asyncio.run(scenario())


class Transport:
    """A connection without a socket."""

    ended: float | None = None

    def get_extra_info(self, _: str) -> None:
        """There is no socket."""

    def abort(self) -> None:
        self.ended = asyncio.get_running_loop().time()


def test_a_request_that_came_while_the_process_did_not_run_is_answered() -> None:
    async def scenario() -> None:
        loop = cast("looptime.VirtualTimeLoop", asyncio.get_running_loop())
        connections, server, transport = Connections(), asyncio.Protocol(), Transport()
        connection: Any = connections.new(lambda: server)
        connection.connection_made(transport)
        loop.advance(REQUEST_SECONDS + 10)
        # The limit is over, and in the next turns of the loop the server reads what has come.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        connections.requested(server)
        await asyncio.sleep(ANSWER_SECONDS - 1)
        assert transport.ended is None
        connection.connection_lost(None)

    looptime.run(scenario())


def test_a_limit_that_was_noticed_late_is_a_limit() -> None:
    async def scenario() -> None:
        loop = cast("looptime.VirtualTimeLoop", asyncio.get_running_loop())
        transport = Transport()
        connection: Any = Connections().new(asyncio.Protocol)
        connection.connection_made(transport)
        loop.advance(REQUEST_SECONDS + 10)
        await asyncio.sleep(60)
        assert transport.ended == REQUEST_SECONDS + 10 + LATE_SECONDS
        connection.connection_lost(None)

    looptime.run(scenario())
