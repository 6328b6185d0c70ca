"""The local API: its envelope, its refusals, and long answers in slices."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from cells.api.client import AgentError, at_socket
from cells.api.model import RouteItem
from cells.api.resource import ApiPlain, PlainError, Query
from cells.hive import load
from cells.hive.hive import Hive
from cells.observability.http_connections import Connections
from cells.serve.api_socket import ApiSocket
from tests.support.api import MadeUp, api_cell, serving, session_item

PEER = session_item(
    node="a",
    instance="i",
    name="tor-1",
    address="192.0.2.1",
    state="Idle",
    families=["ipv4-unicast"],
    reason="connection refused",
)


def route(number: int) -> RouteItem:
    prefix = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}/32"
    return RouteItem(node="a", instance="i", peer="tor-1", family="ipv4-unicast", prefix=prefix)


def test_peers_are_filtered_by_name_address_and_instance(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with serving(path, MadeUp([PEER])):
        answer = at_socket(path).get("/v1/peers", {})
        assert {key: answer[key] for key in ("apiVersion", "kind", "errors")} == {
            "apiVersion": "cli.waggle/v1",
            "kind": "PeerList",
            "errors": [],
        }
        assert answer["generatedAt"].endswith("Z")
        (item,) = answer["items"]
        assert item == {
            "node": "a",
            "instance": "i",
            "name": "tor-1",
            "address": "192.0.2.1",
            "state": "Idle",
            "families": ["ipv4-unicast"],
            "reason": "connection refused",
        }
        assert at_socket(path).get("/v1/peers", {"peer": "192.0.2.1"})["items"] == [item]
        assert at_socket(path).get("/v1/peers", {"peer": "tor-2"})["items"] == []
        assert at_socket(path).get("/v1/peers", {"instance": "j"})["items"] == []
    assert not path.exists()


def test_a_long_answer_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with serving(path, MadeUp([PEER], [route(number) for number in range(30_001)])):
        items = at_socket(path).get("/v1/routes", {"table": "available"})["items"]
    assert [item["prefix"] for item in items] == [route(n).prefix for n in range(30_001)]


def test_an_answer_cut_at_its_limit_is_marked(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with serving(path, MadeUp([PEER], [route(number) for number in range(1000)])):
        cut = at_socket(path).get("/v1/routes", {"limit": "300"})
        assert ([item["prefix"] for item in cut["items"]], cut["truncated"]) == (
            [route(n).prefix for n in range(300)],
            True,
        )
        assert "truncated" not in at_socket(path).get("/v1/routes", {"limit": "1000"})
        for limit in ("0", "x", "9" * 5000):
            with pytest.raises(
                AgentError, match=f"limit: a number of at least 1, not '{limit[:9]}"
            ):
                at_socket(path).get("/v1/routes", {"limit": limit})
        with pytest.raises(AgentError, match="unknown parameter limit"):
            at_socket(path).get("/v1/peers", {"limit": "1"})


def test_an_answer_ends_when_its_client_leaves(tmp_path: Path) -> None:
    class Endless(MadeUp):
        read = 0

        def routes(self, table: str, **_: object) -> Iterator[Sequence[RouteItem]]:
            del table
            while True:
                self.read += 1
                yield [route(number) for number in range(100)]

    path, facts = tmp_path / "s", Endless([PEER])
    with serving(path, facts):
        client = connect(path)
        client.sendall(b"GET /v1/routes HTTP/1.1\r\nHost: a\r\n\r\n")
        client.settimeout(60)
        for _ in range(20):
            assert client.recv(65536)
        began = settled(facts)
        assert began < 1000  # it waits for its client
        client.close()
        assert settled(facts) - began < 100


def settled(facts: Any) -> int:  # noqa: ANN401
    """Wait until no more slices are read; return their number."""
    before = -1
    while facts.read != before:
        before = facts.read
        time.sleep(0.1)
    return before


def test_no_routes_are_an_empty_list(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with serving(path, MadeUp([PEER])):
        assert at_socket(path).get("/v1/routes", {})["items"] == []


def test_an_unknown_peer_is_not_found_and_a_bad_request_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with serving(path, MadeUp([PEER])):
        (error,) = at_socket(path).get("/v1/routes", {"peer": "tor-9"})["errors"]
        assert error == {
            "code": "NotFound",
            "message": "no peer is called tor-9 (did you mean tor-1?)",
            "unknown": "peer",
        }
        with pytest.raises(AgentError, match="table is none of available, advertised, received"):
            at_socket(path).get("/v1/routes", {"table": "sent"})
        with pytest.raises(AgentError, match="unknown parameter per"):
            at_socket(path).get("/v1/peers", {"per": "x"})
        with pytest.raises(AgentError, match="does not answer like an agent"):
            at_socket(path).get("/v2/peers", {})


def test_health_and_cells_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with serving(path, MadeUp()):
        cell, _ = at_socket(path).get("/v1/cells", {})["items"]
        assert (cell["name"], cell["enabled"]) == ("speaker", True)
        assert cell["health"][0]["message"] == "all is well"
        status, _ = at_socket(path).get("/v1/health", {})["items"]
        assert (status["path"], status["level"]) == (["speaker"], "ok")


def test_h51_garbage_on_the_socket_costs_its_own_connection_only(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with serving(path, MadeUp([PEER])):
        idle = [connect(path) for _ in range(100)]
        for data in (b"\x00\xff\x16" * 1000, b"GET /" + b"a" * 1_000_000, b"\r\n" * 10_000):
            with connect(path) as client:
                client.settimeout(60)
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    client.sendall(data)
                    client.shutdown(socket.SHUT_WR)
                    while client.recv(65536):
                        pass
        assert at_socket(path).get("/v1/peers", {})["items"]
        for client in idle:
            client.close()


def connect(path: Path) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    try:
        client.connect(str(path))
    except OSError:
        client.close()
        raise
    return client


async def listening(path: Path) -> socket.socket:
    """Return a connection, once the agent listens."""
    while True:
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            return connect(path)
        await asyncio.sleep(0.001)


def test_an_agent_that_is_stopped_while_a_request_waits_leaves_no_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handlers are imported by a thread, which takes a while."""
    path = tmp_path / "s"
    importing, imported = threading.Event(), threading.Event()

    def slow(_: Connections) -> None:
        importing.set()
        assert imported.wait(60)

    async def stopped_at_once() -> None:
        api = api_cell(MadeUp())
        hive = Hive((api,), load((api,), flags={"--api-socket": str(path)}))
        run = asyncio.ensure_future(hive.run())
        with await listening(path) as client:
            client.settimeout(60)
            client.sendall(b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n")
            assert await asyncio.to_thread(importing.wait, 60)
            hive.shutdown()
            await run
            assert not client.recv(1), "the request is not answered"
        imported.set()

    monkeypatch.setattr("cells.serve.api_socket.import_listener", slow)
    asyncio.run(stopped_at_once())
    assert not path.exists()


def test_health_has_why_requests_are_refused_until_they_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"

    def failing(_: Connections) -> None:
        raise ImportError("no module named aiohttp")

    def asked() -> list[Any]:
        return list(at_socket(path).get("/v1/status", {})["items"])

    async def main() -> None:
        api = api_cell(MadeUp())
        hive = Hive((api,), load((api,), flags={"--api-socket": str(path)}))

        def messages() -> list[tuple[str, str]]:
            return [(item.level, item.message) for item in hive.health.report()]

        run = asyncio.ensure_future(hive.run())
        (await listening(path)).close()
        with monkeypatch.context() as patched:
            patched.setattr("cells.serve.api_socket.import_listener", failing)
            with pytest.raises(AgentError, match="cannot be imported; the log has the reason"):
                await asyncio.to_thread(asked)
        reason = "internal error: ImportError: no module named aiohttp"
        assert messages() == [("degraded", f"{path}: {reason}")]
        assert await asyncio.to_thread(asked)
        assert messages() == [("ok", f"listening on {path}")]
        hive.shutdown()
        await run

    asyncio.run(main())


def test_a_plain_answer_is_json_without_an_envelope_or_a_refusal_in_words(tmp_path: Path) -> None:
    """As the scripts of other projects read it: a value, or a list; an empty one is Go's null."""

    def refused(_: Query) -> str:
        raise PlainError(404, "there is none")

    plain = [
        ApiPlain(path="/one", read=lambda _: {"a": 1}),
        ApiPlain(path="/many", read=lambda _: iter([[1, 2], [3]])),
        ApiPlain(path="/none", read=lambda _: iter(())),
        ApiPlain(path="/refused", read=refused),
    ]

    async def main() -> None:
        served = ApiSocket(tmp_path / "s", (), plain=plain, reported=pytest.fail)
        served.reserve()
        served.listen()
        await served.start()
        connector = aiohttp.UnixConnector(str(tmp_path / "s"))
        try:
            async with aiohttp.ClientSession("http://localhost", connector=connector) as client:
                answers = []
                for path in ("/one", "/many", "/none", "/refused"):
                    async with client.get(path) as response:
                        kind = response.content_type
                        answers.append((response.status, kind, await response.text()))
        finally:
            await served.stop()
        assert answers == [
            (200, "application/json", '{"a":1}\n'),
            (200, "application/json", "[1,2,3]\n"),
            (200, "application/json", "null\n"),
            (404, "text/plain", "there is none\n"),
        ]

    asyncio.run(main())
