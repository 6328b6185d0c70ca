"""The end of a server's listening sockets, and limits that a process notices late.

The others are in `test_http` and `tests.cells.page`.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast

import pytest

from cells.observability.http_connections import (
    ANSWER_SECONDS,
    LATE_SECONDS,
    MAX_CONNECTIONS,
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

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.reads = True

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def get_extra_info(self, _: str) -> None:
        """There is no socket."""

    def close(self) -> None:
        self.abort()

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


class Server(asyncio.Protocol):
    """Notes what it gets."""

    def __init__(self) -> None:
        self.received: list[object] = []

    def connection_made(self, transport: object) -> None:  # noqa: ARG002
        self.received.append("made")

    def data_received(self, data: bytes) -> None:
        self.received.append(data)

    def pause_writing(self) -> None:
        self.received.append("paused")

    def resume_writing(self) -> None:
        self.received.append("resumed")

    def eof_received(self) -> bool:
        self.received.append("eof")
        return True

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self.received.append("lost")


def direct(data: bytes) -> bytes | None:
    return b"answer" if data == b"plain" else None


def test_a_server_has_a_connection_from_the_first_octets_that_are_not_answered_directly() -> None:
    async def scenario() -> None:
        made: list[Server] = []

        def server() -> Server:
            made.append(Server())
            return made[-1]

        connections, transport = Connections(direct, timed=False), Transport()
        connection: Any = connections.new(server)
        connection.connection_made(transport)
        connection.data_received(b"plain")
        assert not made
        for data in (b"other", b"plain"):
            connection.data_received(data)
        connection.eof_received()
        connection.connection_lost(None)
        assert transport.written == [b"answer"]
        assert [item.received for item in made] == [["made", b"other", b"plain", "eof", "lost"]]
        assert not len(connections)

    looptime.run(scenario())


def test_a_connection_is_not_read_while_its_server_is_imported() -> None:
    async def scenario() -> None:
        imported: list[Server] = []
        connections = Connections(direct, timed=False)
        transports = [Transport() for _ in range(4)]
        made: list[Any] = [
            connections.new(lambda: imported[0] if imported else None) for _ in "abcd"
        ]
        waiting, idle, gone, slow = made
        for connection, transport in zip(made, transports, strict=True):
            connection.connection_made(transport)
        waiting.data_received(b"a part")
        gone.data_received(b"another")
        gone.connection_lost(None)
        idle.data_received(b"plain")
        # It does not read its answers: what follows is the server's, which is not there.
        slow.pause_writing()
        slow.data_received(b"plain")
        assert [transport.reads for transport in transports] == [False, True, False, False]
        imported.append(Server())
        connections.serve_waiting()
        assert [transport.reads for transport in transports] == [True, True, False, True]
        assert imported[0].received == ["made", b"a part", "made", "paused", b"plain"]
        slow.resume_writing()
        assert imported[0].received[-1] == "resumed"

    looptime.run(scenario())


def test_a_request_that_the_server_fails_with_ends_its_connection_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(Server):
        def data_received(self, data: bytes) -> None:
            if data == b"bad":
                raise IndexError("out of range")
            super().data_received(data)

    async def scenario() -> None:
        imported: list[Server] = []
        connections = Connections(direct, timed=False)
        transports = [Transport() for _ in range(3)]
        made: list[Any] = [
            connections.new(lambda: imported.pop(0) if imported else None) for _ in transports
        ]
        servers: list[Server] = [Failing() for _ in transports]
        for connection, transport, data in zip(made, transports, "abc", strict=True):
            connection.connection_made(transport)
            connection.data_received(b"bad" if data == "b" else b"good")
        imported += servers
        connections.serve_waiting()
        made[2].data_received(b"bad")
        assert [transport.ended is None for transport in transports] == [True, False, False]
        assert [server.received for server in servers] == [
            ["made", b"good"],
            ["made"],
            ["made", b"good"],
        ]

    looptime.run(scenario())
    assert [record.getMessage() for record in caplog.records] == [
        "a request ends its connection: IndexError: out of range"
    ] * 2
    assert not any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize("parts", [b"", b"GET /"])
def test_a_flood_does_not_end_what_waits_for_the_server(parts: bytes) -> None:
    sent_by = dict.fromkeys(range(3), b"GET / HTTP/1.1\r\n\r\n")

    async def scenario() -> None:
        connections = Connections(direct, timed=False)
        transports = [Transport() for _ in range(MAX_CONNECTIONS + 10)]
        made: list[Any] = [connections.new(lambda: None) for _ in transports]
        for number, (connection, transport) in enumerate(zip(made, transports, strict=True)):
            connection.connection_made(transport)
            if sent := sent_by.get(number, parts):
                connection.data_received(sent)
        ended = [number for number, item in enumerate(transports) if item.ended is not None]
        assert ended == [*range(3, 13)]

    looptime.run(scenario())


def test_without_a_server_what_waits_is_ended_and_the_others_at_the_close() -> None:
    async def scenario() -> None:
        connections = Connections(direct, timed=False)
        transports = [Transport(), Transport()]
        made: list[Any] = [connections.new(lambda: None) for _ in transports]
        for connection, transport in zip(made, transports, strict=True):
            connection.connection_made(transport)
        made[0].data_received(b"other")
        connections.end_waiting(b"none")
        assert transports[0].written == [b"none"]
        assert [transport.ended is None for transport in transports] == [False, True]
        made[0].connection_lost(None)
        assert made[1].eof_received() is None
        connections.close()
        assert transports[1].ended is not None
        made[1].connection_lost(None)

    looptime.run(scenario())
