"""Slow, silent and flooding clients of the page: bounded, and gone in time; others are answered."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web

from cells.api.resource import ApiResource
from cells.observability import http_connections
from cells.observability.http_connections import MAX_CONNECTIONS
from cells.page.listener import MOST_STREAMS, BoundedListener
from tests.support import looptime
from tests.support.page import Page, page
from tests.support.wait import eventually, until

LARGE = [{"text": "x" * 10_000} for _ in range(4000)]


def large() -> Iterator[list[dict[str, str]]]:
    for start in range(0, len(LARGE), 100):
        yield LARGE[start : start + 100]


PATHS = [
    ApiResource(path="/v1/large", kind="List", read=lambda _: large()),
    ApiResource(path="/v1/small", kind="List", read=lambda _: [{"text": "x"}]),
]


def connect(served: Page, path: str = "") -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", served.port), timeout=60)
    if path:
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return sock


def small(served: Page) -> None:
    """Send an ordinary request."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.request("GET", "/v1/small")
    assert json.loads(connection.getresponse().read())["items"] == [{"text": "x"}]
    connection.close()


def ends(sock: socket.socket) -> bool:
    """Read an answer; returns whether the connection ends."""
    sock.settimeout(60)
    try:
        while sock.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    finally:
        sock.close()
    return True


def none_is_open(served: Page) -> None:
    assert len(served.bounds.connections) == 0


def test_the_kernel_gives_up_a_client_that_is_gone_without_a_word() -> None:
    class Server(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.append(transport.get_extra_info("socket"))

    accepted: list[socket.socket] = []

    async def scenario() -> None:
        connections = http_connections.Connections()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: connections.new(Server), "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()[:2]):
            await until(lambda: bool(accepted))
            option = accepted[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            assert option == http_connections.ANSWER_SECONDS * 1000
        server.close()
        await until(lambda: not len(connections))

    asyncio.run(scenario())


def test_silent_connections_make_room_for_requests() -> None:
    with page(PATHS) as served:
        silent = [connect(served) for _ in range(3 * MAX_CONNECTIONS)]
        assert len(served.bounds.connections) <= MAX_CONNECTIONS
        small(served)
        for sock in silent:
            sock.close()


def test_a_client_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "ANSWER_SECONDS", 0.3)
    with page(PATHS) as served:
        slow = [connect(served, "/v1/large") for _ in range(10)]
        eventually(lambda: none_is_open(served))
        monkeypatch.setattr(http_connections, "ANSWER_SECONDS", 1000.0)
        small(served)
        for sock in slow:
            sock.close()


def test_a_stream_that_is_read_outlives_the_time_of_an_answer() -> None:
    """In virtual time; a stream that is not read ends."""

    class Stream:
        def __init__(self, unread: int) -> None:
            self.aborted: float | None = None
            self._unread = unread

        def get_extra_info(self, _: str) -> None:
            """There is no socket."""

        def get_write_buffer_size(self) -> int:
            return self._unread

        def abort(self) -> None:
            self.aborted = asyncio.get_running_loop().time()

    async def follow(unread: int) -> float | None:
        bounds, protocol, stream = BoundedListener({"/v1/live"}), asyncio.Protocol(), Stream(unread)
        connection = bounds.connections.new(lambda: protocol)
        connection.connection_made(cast("Any", stream))

        async def live(_: web.Request) -> web.StreamResponse:
            await asyncio.sleep(10 * http_connections.ANSWER_SECONDS)
            return web.Response()

        request = SimpleNamespace(path="/v1/live", protocol=protocol, transport=stream)
        await bounds.admitted(cast("Any", request), live)
        connection.connection_lost(None)
        return stream.aborted

    assert looptime.run(follow(unread=0)) is None
    assert looptime.run(follow(unread=1)) == http_connections.ANSWER_SECONDS


def test_pages_beyond_the_limit_are_asked_to_reconnect() -> None:
    with page(PATHS) as served:
        following = [connect(served, "/v1/live") for _ in range(MOST_STREAMS)]
        for sock in following:
            assert sock.recv(15) == b"HTTP/1.1 200 OK"
        late = connect(served, "/v1/live")
        refused = late.recv(4096)
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nRetry-After: 30\r\n" in refused
        small(served)
        for sock in (*following, late):
            sock.close()


@pytest.mark.parametrize("path", ["/", "/v1/live", "/v1/small", "/sign-in"])
def test_a_client_without_the_token_has_one_request(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connections, "REQUEST_SECONDS", 1000.0)
    with page(PATHS, token=b"token") as served:
        assert ends(connect(served, path)), "no connection is kept by further requests"


@pytest.mark.parametrize("path", ["/none", "/v1/none"])
def test_a_path_that_does_not_exist_ends_the_connection(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connections, "REQUEST_SECONDS", 1000.0)
    monkeypatch.setattr(http_connections, "ANSWER_SECONDS", 1000.0)
    with page(PATHS) as served:
        assert ends(connect(served, path))


def test_a_form_that_comes_slowly_has_the_time_of_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_connections, "REQUEST_SECONDS", 0.2)
    with page(PATHS, token=b"token") as served:
        sock = connect(served)
        sock.sendall(b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\nt")
        assert ends(sock)


def test_a_malformed_request_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with page(PATHS) as served:
        for octets in (b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\na b: \x00\r\n\r\n"):
            sock = connect(served)
            sock.sendall(octets)
            assert sock.recv(12) in (b"HTTP/1.0 400", b"HTTP/1.1 400")
            sock.close()
    assert not caplog.records


def test_a_browser_gets_events_and_another_client_lines() -> None:
    with page(PATHS) as served:
        for accept, first in (("text/event-stream", b"data: {"), ("*/*", b"{")):
            connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
            connection.request("GET", "/v1/live", headers={"Accept": accept})
            answer = connection.getresponse()
            assert answer.readline().startswith(first)
            connection.close()
