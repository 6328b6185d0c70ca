"""The bounds of the socket: floods, silent clients, clients that do not read, and a failed import."""

from __future__ import annotations

import asyncio
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import uvloop

from cells.api.client import AgentError, at_socket
from cells.api.model import RouteItem
from cells.api.resource import ApiAction, NoBody
from cells.observability import http_connections
from cells.observability.http_connections import MAX_CONNECTIONS, Connections
from cells.serve.api_socket import NOT_IMPORTED, ApiSocket, import_listener
from cells.serve.handlers import Listener
from tests.support.api import MadeUp, serving
from tests.support.wait import NotReadyError, eventually

ROUTES = [
    RouteItem(
        node="n",
        instance="i",
        peer="tor-1",
        family="ipv4-unicast",
        prefix=f"10.{number >> 8}.{number & 255}.0/24",
        as_path="64512 " * 100,
    )
    for number in range(20_000)
]
"""An answer that no buffer of a socket holds."""
REQUEST = b"GET /v1/%s HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "s"
    with serving(path, MadeUp(routes=ROUTES)):
        yield path


def connect(stack: ExitStack, path: Path, request: bytes = b"") -> socket.socket:
    sock = stack.enter_context(socket.socket(socket.AF_UNIX))
    sock.connect(str(path))
    sock.settimeout(60)
    sock.sendall(request)
    return sock


def is_ended(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except ConnectionError:
        return True


def answers(path: Path) -> bool:
    return bool(at_socket(path).get("/v1/status", {})["items"])


def test_silent_clients_make_room_for_a_request(path: Path) -> None:
    with ExitStack() as stack:
        silent = [connect(stack, path, b"GET /v1/st") for _ in range(MAX_CONNECTIONS + 20)]
        assert answers(path)
        # The oldest ones are gone, the last ones may still ask.
        assert is_ended(silent[0])
        silent[-1].sendall(b"atus HTTP/1.1\r\nHost: x\r\n\r\n")
        assert silent[-1].recv(12) == b"HTTP/1.1 200"


def test_a_connection_serves_many_requests_and_makes_room_between_them(path: Path) -> None:
    with ExitStack() as stack:
        kept = connect(stack, path)
        for _ in range(3):
            kept.sendall(REQUEST % b"status")
            answer = b""
            while not answer.endswith(b"0\r\n\r\n"):
                answer += kept.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")
        for _ in range(MAX_CONNECTIONS):
            connect(stack, path)
        assert answers(path)
        assert is_ended(kept)


def test_clients_that_do_not_read_make_room_after_a_while(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connections, "STALLED_SECONDS", 3600.0)
    with ExitStack() as stack:
        for _ in range(MAX_CONNECTIONS):
            connect(stack, path, REQUEST % b"routes")

        def has_room() -> None:
            # A client is stalled once the socket has taken no more of its answer.
            try:
                assert answers(path)
            except AgentError as error:
                raise NotReadyError(str(error)) from error

        def full() -> None:
            # One of the first may have been ended before its request had arrived.
            connect(stack, path, REQUEST % b"routes")
            try:
                answers(path)
            except AgentError:
                return
            raise AssertionError("there is room")

        eventually(full)
        monkeypatch.setattr(http_connections, "STALLED_SECONDS", 0.0)
        eventually(has_room)


def test_connections_that_just_came_are_closed_at_the_end(tmp_path: Path) -> None:
    """As in a program: with uvloop, which warns of a transport that is not closed."""

    async def main() -> None:
        api = ApiSocket(tmp_path / "s", (), reported=pytest.fail)
        api.reserve()
        await api.start()
        for _ in range(10):
            # It accepts one in each turn.
            connect(stack, tmp_path / "s")
        await asyncio.sleep(0)
        await api.stop()

    with ExitStack() as stack, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        uvloop.run(main())
    assert not [str(item.message) for item in caught]


def test_a_request_that_comes_at_the_end_imports_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process would end after the import."""

    async def main() -> None:
        api = ApiSocket(tmp_path / "s", (), reported=pytest.fail)
        api.reserve()
        await api.start()
        with ExitStack() as stack:
            client = connect(stack, tmp_path / "s")
            await asyncio.sleep(0.01)
            client.sendall(REQUEST % b"none")
            await api.stop()
            assert is_ended(client)

    monkeypatch.setattr("cells.serve.api_socket.import_listener", pytest.fail)
    asyncio.run(main())


def refusal_text(path: Path) -> str:
    """Return why a client has no answer."""
    with pytest.raises(AgentError) as refused:
        at_socket(path).get("/v1/status", {})
    return str(refused.value)


def test_the_library_is_imported_for_the_first_request_that_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported: list[Connections] = []
    complete: list[bool] = []

    def failing(connections: Connections) -> Callable[..., Listener]:
        imported.append(connections)
        if not complete:
            raise ImportError("no module named aiohttp")
        return import_listener(connections)

    async def main() -> None:
        reports: list[str] = []
        action = ApiAction(path="/v1/change", kind="ChangeList", run=lambda _: [], body=NoBody)
        api = ApiSocket(tmp_path / "s", (), actions=[action], reported=reports.append)
        api.reserve()
        await api.start()
        change = b"POST /v1/change HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
        question = REQUEST % b"none"

        async def asked(*requests: bytes) -> list[bytes]:
            """Return the first octets of each answer, on one connection."""
            reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
            answers = []
            for request in requests:
                writer.write(request)
                answers.append((await reader.read(65536))[:12])
            writer.close()
            return answers

        refused = b"HTTP/1.1 503"
        assert await asked(change, change) == [b"HTTP/1.1 200"] * 2
        assert not imported
        both = await asyncio.gather(asked(change, question), asked(question))
        assert [*both] == [[b"HTTP/1.1 200", refused], [refused]]
        assert await asyncio.to_thread(refusal_text, tmp_path / "s") == NOT_IMPORTED
        assert reports == ["internal error: ImportError: no module named aiohttp"]
        assert await asked(change) == [b"HTTP/1.1 200"]
        complete.append(True)
        imported.clear()
        # Both wait, and neither is lost.
        both = await asyncio.gather(asked(question, change), asked(change, question))
        assert [*both] == [[b"HTTP/1.1 404", b"HTTP/1.1 200"], [b"HTTP/1.1 200", b"HTTP/1.1 404"]]
        assert len(imported) == 1
        assert reports[1:] == [""]
        await api.stop()

    monkeypatch.setattr("cells.serve.api_socket.import_listener", failing)
    asyncio.run(main())
