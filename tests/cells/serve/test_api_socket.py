"""The bounds of the socket: floods, silent clients and clients that do not read."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cells.api.client import AgentError, at_socket
from cells.api.model import RouteItem
from cells.observability import http_connections
from cells.observability.http_connections import MAX_CONNECTIONS
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
