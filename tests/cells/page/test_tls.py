"""The page over TLS: clients with and without a certificate, and handshakes that do not end."""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cells.hive import HealthTree
from cells.hive.lifecycle import Lifecycle
from cells.options import PageOptions
from cells.page.handshake import MOST_HANDSHAKES
from cells.page.server import PageServer
from tests.support.background_loop import BackgroundLoop
from tests.support.page import page, resources
from tests.support.wait import eventually


@pytest.fixture(autouse=True)
def _handshakes_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cells.page.handshake.HANDSHAKE_SECONDS", 60.0)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a CA, and certificates of a server, a client and a foreign client."""
    directory = tmp_path_factory.mktemp("tls")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    new = ["openssl", "req", "-x509", *curve]
    for name, issuer in (("ca", ""), ("server", "ca"), ("client", "ca"), ("foreign", "")):
        files = ["-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name}"]
        signed = ["-CA", "ca.crt", "-CAkey", "ca.key"] if issuer else []
        subject = ["-addext", "subjectAltName=IP:127.0.0.1"] if name == "server" else []
        command = [*new, *files, *signed, *subject]
        subprocess.run(command, cwd=directory, check=True, capture_output=True)
    return directory


@contextmanager
def served(files: Path) -> Iterator[int]:
    """Serve the page of a whole `PageServer` with mTLS; yields the port."""
    options = PageOptions(
        address="127.0.0.1:0",
        certificate=str(files / "server.crt"),
        key=str(files / "server.key"),
        client_ca=str(files / "ca.crt"),
    )
    paths: Any = resources()
    none: Any = ()
    server = PageServer(Lifecycle(), HealthTree().scope("page"), options, paths, none, none)
    with BackgroundLoop("page") as loop:
        loop.do(server.start())
        try:
            yield server.address[1]
        finally:
            loop.do(server.stop())


def get(port: int, files: Path, certificate: str = "") -> int:
    context = ssl.create_default_context(cafile=files / "ca.crt")
    if certificate:
        context.load_cert_chain(files / f"{certificate}.crt", files / f"{certificate}.key")
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
    try:
        connection.request("GET", "/v1/peers")
        answer = connection.getresponse()
        assert b"tor-1" in answer.read()
        return answer.status
    finally:
        connection.close()


def test_with_a_client_ca_its_certificates_are_admitted_and_no_others(files: Path) -> None:
    with served(files) as port:
        assert get(port, files, "client") == 200
        for certificate in ("", "foreign"):
            with pytest.raises(OSError, match=r"(?i)alert|reset|closed|eof|broken"):
                get(port, files, certificate)
        assert get(port, files, "client") == 200


def test_handshakes_that_do_not_end_hold_no_more_than_their_number(files: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(files / "server.crt", files / "server.key")
    with page(resources(), tls=tls) as of:
        silent = [socket.create_connection(("127.0.0.1", of.port)) for _ in range(150)]
        assert of.bounds.handshakes is not None
        handshakes = of.bounds.handshakes
        assert len(handshakes) <= MOST_HANDSHAKES
        assert get(of.port, files) == 200
        for sock in silent[-20:]:
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        for sock in silent:
            sock.close()
        eventually(lambda: _none(handshakes))
        assert get(of.port, files) == 200


def _none(handshakes: Any) -> None:  # noqa: ANN401
    assert len(handshakes) == 0
