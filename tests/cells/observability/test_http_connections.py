"""The end of a server's listening sockets; its limits are in `test_http` and `tests.cells.page`."""

from __future__ import annotations

import asyncio
import socket

from cells.observability.http_connections import close_server


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
