"""The proxy to an API server is that of the kubeconfig, or of the environment; ``.netrc`` is unread."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import kubernetes_asyncio  # noqa: F401  imported here, as it takes seconds
import pytest
import yaml

from resources.kubernetes.connection import Access, Connection
from resources.kubernetes.errors import StatusError
from tests.support.apiserver import write_kubeconfig

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
BASIC = "Basic " + base64.b64encode(b"me:secret").decode()
SERVER = "http://api.example.test:6443"
"""Has no address: an answer is the proxy's."""


@pytest.fixture(autouse=True)
def _no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@asynccontextmanager
async def _listening() -> AsyncIterator[tuple[int, list[list[str]]]]:
    """Answer each request, as a proxy or an API server; yield the port, and their lines."""
    requests: list[list[str]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *header = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        requests.append([first, *(line[:1].upper() + line[1:] for line in header)])
        writer.write(ANSWER)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        yield listening.sockets[0].getsockname()[1], requests


async def _ask(config: Path) -> None:
    connection = Connection(Access(str(config)))
    try:
        async with connection.get("/api", (), silence=60.0) as response:
            assert await response.json() == {}
        with pytest.raises(StatusError):
            async with connection.websocket("/exec", (), ()):
                pytest.fail("the answer is none of a WebSocket")
    finally:
        await connection.close()


@pytest.mark.parametrize("given", ["HTTP_PROXY", "http_proxy", "kubeconfig"])
def test_both_kinds_of_requests_go_by_the_proxy(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_kubeconfig(tmp_path / "config", SERVER, {"token": "t"})

    async def scenario() -> None:
        async with _listening() as (port, requests):
            url = f"http://me:secret@127.0.0.1:{port}"
            if given == "kubeconfig":
                monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
                content = yaml.safe_load(config.read_text())
                content["clusters"][0]["cluster"]["proxy-url"] = url
                config.write_text(yaml.safe_dump(content))
            else:
                monkeypatch.setenv(given, url)
            await _ask(config)
        for path, lines in zip(("/api", "/exec"), requests, strict=True):
            assert lines[0] == f"GET {SERVER}{path} HTTP/1.1"
            assert {"Authorization: Bearer t", f"Proxy-Authorization: {BASIC}"} <= {*lines}

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"HTTPS_PROXY": "http://127.0.0.1:1"},
        {"HTTP_PROXY": "http://127.0.0.1:1", "NO_PROXY": "example.test,127.0.0.1"},
    ],
    ids=lambda environment: " ".join(environment),
)
def test_without_a_proxy_for_its_address_the_api_server_is_asked(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    async def scenario() -> None:
        async with _listening() as (port, requests):
            url = f"http://127.0.0.1:{port}"
            await _ask(write_kubeconfig(tmp_path / "config", url, {"token": "t"}))
        assert [lines[0] for lines in requests] == ["GET /api HTTP/1.1", "GET /exec HTTP/1.1"]

    asyncio.run(scenario())


@pytest.mark.parametrize("user", [{}, {"token": "t"}], ids=["no token", "token"])
def test_netrc_has_no_credentials_of_an_api_server(
    user: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))

    async def scenario() -> None:
        async with _listening() as (port, requests):
            await _ask(write_kubeconfig(tmp_path / "config", f"http://127.0.0.1:{port}", user))
        wanted = [f"Authorization: Bearer {token}" for token in user.values()]
        for lines in requests:
            assert [line for line in lines if line.startswith("Authorization")] == wanted

    asyncio.run(scenario())
