"""Probes and metrics over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from cells import declarations
from cells.hive import HiveError, SettingError, StartError, load
from cells.hive.hive import Hive
from cells.observability import http_connections
from cells.observability.http import HttpServer
from cells.observability.listen_address import parse_address
from cells.observability.metrics import Metrics
from tests.support.wait import until

CELLS = (declarations.METRICS, declarations.HTTP)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9100", ("127.0.0.1", 9100)),
        (":9100", ("127.0.0.1", 9100)),
        ("0.0.0.0:1", ("0.0.0.0", 1)),
        ("[::1]:9100", ("::1", 9100)),
        ("localhost:0", ("localhost", 0)),
    ],
)
def test_an_address_is_a_port_with_a_host_before_it(text: str, expected: tuple[str, int]) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "host", "host:", "1:65536", "::1:9100", "a:b", "a:-1", "a:²", f"a:{'9' * 5000}"],
    ids=lambda text: ascii(text[:16]),
)
def test_an_invalid_address_is_named(text: str) -> None:
    with pytest.raises(SettingError, match="--http-address: is not"):
        parse_address(text)


def serve(check: Callable[[Hive, str], Awaitable[None]], **flags: str) -> None:
    """Run a hive with the http cell and call ``check`` with its URL."""
    hive = Hive(CELLS, load(CELLS, flags={"--http-address": "127.0.0.1:0", **flags}))

    async def scenario() -> None:
        started = asyncio.Event()
        run = asyncio.create_task(hive.run(started.set))
        await started.wait()
        host, port = hive.get(HttpServer).address
        try:
            await check(hive, f"http://{host}:{port}")
        finally:
            hive.shutdown()
            await run

    asyncio.run(scenario())


async def get(url: str, authorization: str = "") -> tuple[int, str]:
    headers = {"Authorization": authorization} if authorization else {}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        return response.status, await response.text()


def test_readiness_waits_for_its_gates_and_liveness_for_nothing() -> None:
    async def check(hive: Hive, url: str) -> None:
        opened = hive.readiness.gate("sync", "the first pass over the manifests")
        assert await get(f"{url}/livez") == (200, "ok\n")
        assert await get(f"{url}/readyz") == (
            503,
            "[-]sync waits for the first pass over the manifests\nnot ready\n",
        )
        opened()
        assert await get(f"{url}/readyz") == (200, "ok\n")
        assert await get(f"{url}/readyz?verbose") == (200, "[+]sync ok\nok\n")

    serve(check)


def test_health_lists_the_tree_with_text_made_safe() -> None:
    async def check(hive: Hive, url: str) -> None:
        hive.health.scope("speaker").scope("tor-1").degraded("sent \x1b[2J\n")
        assert await get(f"{url}/healthz") == (200, "degraded\n")
        status, text = await get(f"{url}/healthz?verbose")
        assert status == 200
        assert "[-]speaker/tor-1 degraded: sent \\x1b[2J\\x0a\n" in text
        assert "[+]http ok: listening on 127.0.0.1:" in text

    serve(check)


async def half(url: str, octets: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection, and send part of a request."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(octets)
    await writer.drain()
    return reader, writer


async def ended(reader: asyncio.StreamReader) -> bool:
    """Whether the server ends a connection."""
    try:
        return await asyncio.wait_for(reader.read(), 60) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize(
    "octets", [b"", b"GET /livez HTTP/1.1\r\nHost: a\r\n", b"POST /livez HTTP/1.1\r\nContent-Le"]
)
def test_half_a_request_is_ended_in_time(octets: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "REQUEST_SECONDS", 0.1)

    async def check(_: Hive, url: str) -> None:
        reader, writer = await half(url, octets)
        assert await ended(reader)
        writer.close()
        assert await get(f"{url}/livez") == (200, "ok\n")

    serve(check)


def test_a_path_that_does_not_exist_keeps_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "REQUEST_SECONDS", 1000.0)

    async def check(_: Hive, url: str) -> None:
        reader, writer = await half(url, b"GET /none HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await asyncio.wait_for(reader.read(), 60)).startswith(b"HTTP/1.1 404")
        writer.close()

    serve(check)


def test_an_answer_that_is_not_read_is_ended_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "REQUEST_SECONDS", 1000.0)
    monkeypatch.setattr(http_connections, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(Metrics, "render", lambda _: b"x" * 30_000_000)

    async def check(hive: Hive, url: str) -> None:
        reader, writer = await half(url, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        connections = hive.get(HttpServer).connections
        await until(lambda: len(connections) == 1)
        await until(lambda: len(connections) == 0)
        # Ended in the middle: what the buffers held, and no more.
        octets = 0
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 20):
                octets += len(data)
        assert 0 < octets < 30_000_000
        writer.close()

    serve(check)


def test_half_requests_make_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(http_connections, "REQUEST_SECONDS", 1000.0)

    async def check(hive: Hive, url: str) -> None:
        connections = hive.get(HttpServer).connections
        silent = [await half(url, b"GET /") for _attempt in range(10)]
        for _attempt in range(5):
            assert await get(f"{url}/livez") == (200, "ok\n")
            assert len(connections) <= 3
        # The oldest made room.
        for reader, _writer in silent[:7]:
            assert await ended(reader)
        for _reader, one in silent:
            one.close()

    serve(check)


def test_a_connection_serves_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "ANSWER_SECONDS", 1000.0)

    async def check(hive: Hive, url: str) -> None:
        request = b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n"
        reader, writer = await half(url, request)
        answer = await asyncio.wait_for(reader.read(), 60)  # to its end
        assert answer.endswith(b"\r\n\r\nok\n")
        await until(lambda: len(hive.get(HttpServer).connections) == 0)
        writer.close()

    serve(check)


def test_the_limits_suit_probes_and_scrapes() -> None:
    """64 connections, 5 s for a request, 30 s for its answer: half requests hold nothing."""
    assert http_connections.MAX_CONNECTIONS == 64
    assert http_connections.REQUEST_SECONDS == 5
    assert http_connections.ANSWER_SECONDS == 30


def test_details_are_for_this_host_or_for_the_token(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    monkeypatch.setattr("cells.observability.http.is_loopback", lambda _: False)

    async def check(hive: Hive, url: str) -> None:
        hive.readiness.gate("sync", "a name")
        for path in ("healthz?verbose", "readyz?verbose"):
            assert (await get(f"{url}/{path}"))[0] == 403
            assert (await get(f"{url}/{path}", "Bearer wrong"))[0] == 403
            assert (await get(f"{url}/{path}", "Bearer secret"))[0] in (200, 503)
        assert await get(f"{url}/readyz") == (503, "not ready\n")
        assert await get(f"{url}/healthz") == (200, "ok\n")
        assert "a name" in (await get(f"{url}/readyz", "Bearer secret"))[1]

    serve(check, **{"--http-token-file": str(token)})


def test_a_token_file_that_cannot_be_read_degrades_health_until_it_can(tmp_path: Path) -> None:
    token = tmp_path / "token"

    async def check(hive: Hive, url: str) -> None:
        def message() -> str:
            return next(s.message for s in hive.health.report() if s.path == ("http",))

        tokens = hive.get(HttpServer)._token
        assert tokens is not None
        read = tokens.read
        assert f"--http-token-file: {token} cannot be read: No such file" in message()
        token.write_text("")
        read()
        assert f"{token} is empty" in message()
        token.write_text("secret")
        read()
        assert message().startswith("listening on")
        assert (await get(f"{url}/healthz"))[1] == "ok\n"

    serve(check, **{"--http-token-file": str(token)})


@pytest.mark.parametrize(
    ("has_token", "trouble", "logged"),
    [(True, "is empty", True), (True, "", False), (False, "is empty", False)],
)
def test_a_token_file_that_cannot_be_used_is_a_line_of_the_log(
    has_token: bool, trouble: str, logged: bool
) -> None:
    server: Any = object.__new__(HttpServer)
    server._report = lambda: None
    token = SimpleNamespace(path=Path("/run/token"), trouble=trouble)
    server._token = token if has_token else None
    with capture_logs() as logs:
        server._token_changed(trouble)
    line = {
        "event": "no token for details",
        "event_name": "http.token",
        "log_level": "warning",
        "file": "/run/token",
        "reason": trouble,
    }
    assert logs == ([line] if logged else [])


def test_metrics_have_the_documented_names() -> None:
    async def check(hive: Hive, url: str) -> None:
        hive.supervisor.restarts["intent.rounds"] = 2
        status, text = await get(f"{url}/metrics")
        assert status == 200
        assert "waggle_build_info{" in text
        assert 'waggle_task_restarts_total{task="intent.rounds"} 2.0' in text
        for name in (
            "waggle_reconcile_duration_seconds",
            "waggle_propagation_duration_seconds",
            "waggle_event_loop_lag_seconds",
        ):
            assert f"# TYPE {name} histogram" in text
        assert "waggle_ready 1.0" in text

    serve(check)


def test_a_name_without_an_address_is_a_sentence_that_names_it() -> None:
    hive = Hive(CELLS, load(CELLS, flags={"--http-address": "no-such-host.invalid:9100"}))
    with pytest.raises(StartError) as caught:
        asyncio.run(hive.run())
    text = str(caught.value)
    assert text.startswith("--http-address: cannot listen on no-such-host.invalid:9100: ")
    assert "name" in text
    assert "unknown error" not in text


def test_an_address_in_use_is_a_sentence_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        hive = Hive(CELLS, load(CELLS, flags={"--http-address": address}))
        with pytest.raises(StartError) as caught:
            asyncio.run(hive.run())
    assert str(caught.value) == (
        f"--http-address: cannot listen on {address}: address already in use"
    )


def test_the_http_cell_without_the_metrics_cell_fails_by_name() -> None:
    cells = (declarations.LOGGING, *CELLS)
    flags = {"--http-address": "0", "disable_cell": ["metrics"]}
    with pytest.raises(HiveError, match="cell http needs Metrics of cell metrics, which is disa"):
        Hive(cells, load(cells, flags=flags))


def test_a_connection_passes_on_all_that_happens_to_it() -> None:
    class Inner(asyncio.Protocol):
        def __init__(self) -> None:
            self.calls: list[str] = []

        def __getattribute__(self, name: str) -> object:
            if name in vars(asyncio.Protocol) | vars(asyncio.BaseProtocol) and name[0] != "_":
                return lambda *given: self.calls.append(f"{name}{given}")
            return super().__getattribute__(name)

    async def main() -> None:
        inner, transport = Inner(), asyncio.Transport()
        connections = http_connections.Connections()
        connection = connections.new(lambda: inner)
        connection.connection_made(transport)
        connection.data_received(b"x")
        connection.pause_writing()
        connection.resume_writing()
        connection.eof_received()
        assert len(connections) == 1
        connection.connection_lost(None)
        assert len(connections) == 0
        assert [call.partition("(")[0] for call in inner.calls] == [
            "connection_made",
            "data_received",
            "pause_writing",
            "resume_writing",
            "eof_received",
            "connection_lost",
        ]
        assert inner.calls[1] == "data_received(b'x',)"
        assert inner.calls[-1] == "connection_lost(None,)"

    asyncio.run(main())
