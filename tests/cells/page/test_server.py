"""The listener of the page: its address, its token and its certificate, as options have them."""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from cells.hive import Group, HealthTree, SettingError, StartError
from cells.options import PageOptions
from cells.page import server
from cells.page.server import PageServer


class Stand:
    """A page whose HTTP server is the test's."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401
        self.tree = HealthTree()
        self.hooks: dict[str, Any] = {}
        self.calls: list[object] = []
        self.error: OSError | None = None
        self.page = PageServer(
            cast("Any", SimpleNamespace(append=self.append)),
            self.tree.scope("page"),
            PageOptions(**options),
            Group(),
            Group(),
            Group(),
        )
        bounds = SimpleNamespace(listen=self.listen, close=self.close_bounds)
        made = cast("Any", (bounds, self))
        self.page._construct = lambda: made  # type: ignore[method-assign]

    def append(self, name: str, **hooks: Any) -> None:  # noqa: ANN401
        assert name == "page"
        self.hooks = hooks

    # The HTTP server, and its bounds

    async def protocol(self) -> str:
        return "protocol"

    async def listen(self, inner: str, host: str, port: int, tls: object) -> tuple[str, int]:
        self.calls.append((inner, host, port, tls))
        if self.error is not None:
            raise self.error
        return host, port or 4711

    async def close_bounds(self) -> None:
        self.calls.append("bounds")

    async def close(self) -> None:
        self.calls.append("listener")

    @property
    def health(self) -> tuple[str, str]:
        (status,) = self.tree.report()
        return str(status.level), status.message


def test_without_an_address_the_page_is_on_the_socket_alone() -> None:
    stand = Stand()
    assert stand.health == ("ok", "on the agent's socket")
    assert stand.hooks == {}


def test_the_address_is_reserved_with_the_port_that_the_kernel_chose() -> None:
    stand = Stand(address="127.0.0.1:0")
    assert stand.page.address == ("127.0.0.1", 0)
    with capture_logs() as logs:
        asyncio.run(stand.hooks["reserve"]())
    assert [(line["event_name"], line["address"], line["port"]) for line in logs] == [
        ("page.listening", "127.0.0.1", 4711)
    ]
    assert stand.calls == [("protocol", "127.0.0.1", 0, None)]
    assert stand.page.address == ("127.0.0.1", 4711)
    assert stand.health == ("ok", "listening on 127.0.0.1:4711")


def test_an_address_in_use_refuses_the_start() -> None:
    stand = Stand(address="127.0.0.1:80")
    stand.error = OSError(errno.EADDRINUSE, "in use")
    with pytest.raises(StartError) as caught:
        asyncio.run(stand.hooks["reserve"]())
    assert str(caught.value) == (
        "--page-address: cannot listen on 127.0.0.1:80: address already in use"
    )
    assert stand.calls[-1] == "listener"
    stand.error = OSError(-2, "Name or service not known")
    with pytest.raises(StartError, match="name or service not known"):
        asyncio.run(stand.hooks["reserve"]())


def test_the_end_closes_what_listens_once() -> None:
    stand = Stand(address="localhost:8080")

    async def scenario() -> None:
        await stand.hooks["stop"]()
        assert stand.calls == []
        await stand.hooks["reserve"]()
        await stand.hooks["stop"]()
        await stand.hooks["stop"]()

    asyncio.run(scenario())
    assert stand.calls[1:] == ["bounds", "listener"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_on_loopback_no_token_is_needed(host: str) -> None:
    assert Stand(address=f"{host}:1").page._local


@pytest.mark.parametrize("host", ["192.0.2.1", "0.0.0.0", "node.example"])
def test_elsewhere_a_token_or_certificates_of_clients_are(host: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError) as caught:
        Stand(address=f"{host}:1")
    assert f"{host}:1 is not on loopback: set --page-token-file or --page-client-ca" in str(
        caught.value
    )
    assert not Stand(address=f"{host}:1", token_file=str(tmp_path / "token")).page._local


def test_a_token_that_cannot_be_read_is_named_until_it_can(tmp_path: Path) -> None:
    path = tmp_path / "token"
    stand = Stand(address="192.0.2.1:1", token_file=str(path))
    with capture_logs() as logs:
        asyncio.run(stand.hooks["reserve"]())
    (line,) = [line for line in logs if line["event_name"] == "page.token"]
    assert line["log_level"] == "warning"
    assert line["reason"].startswith(f"--page-token-file: {path} ")
    assert stand.health == (
        "degraded",
        f"{line['reason']}; without a token the page shows nothing",
    )
    path.write_text("secret\n")
    token = stand.page._token
    assert token is not None
    assert token.read() == b"secret"
    assert stand.health == ("ok", "listening on 192.0.2.1:1")


@pytest.mark.parametrize("given", ["certificate", "key", "client_ca"])
def test_a_certificate_and_its_key_are_given_together(given: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="needs --page-key, as --page-client-ca needs both"):
        Stand(address="127.0.0.1:1", **{given: str(tmp_path / "file")})


def test_certificates_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    with pytest.raises(SettingError, match="cannot be used: No such file"):
        Stand(address="127.0.0.1:1", certificate=missing, key=missing)


@pytest.mark.parametrize("given", ["certificate", "key", "client_ca"])
def test_a_certificate_that_is_a_named_pipe_is_refused(given: str, tmp_path: Path) -> None:
    """OpenSSL would wait for its writer."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    files = {"certificate": "c", "key": "k", given: str(path)}
    with pytest.raises(SettingError, match=f"cannot be used: {path}: it is a named pipe"):
        Stand(address="127.0.0.1:1", **files)


def test_a_client_has_to_have_a_certificate_where_an_authority_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[object] = []

    class Context:
        minimum_version: object = None
        verify_mode: object = None

        def __init__(self, protocol: object) -> None:
            assert protocol is ssl.PROTOCOL_TLS_SERVER

        def load_cert_chain(self, *files: str) -> None:
            loaded.append(files)

        def load_verify_locations(self, file: str) -> None:
            loaded.append(file)

    monkeypatch.setattr(ssl, "SSLContext", Context)
    options: dict[str, Any] = {"certificate": "c", "key": "k"}
    alone: Any = server._tls(PageOptions(address="127.0.0.1:1", **options))
    assert alone.minimum_version is ssl.TLSVersion.TLSv1_2
    assert (alone.verify_mode, loaded) == (None, [("c", "k")])
    checked: Any = server._tls(PageOptions(address="127.0.0.1:1", client_ca="ca", **options))
    assert checked.verify_mode is ssl.CERT_REQUIRED
    assert loaded[1:] == [("c", "k"), "ca"]
