"""The connection of a request is closed although the server sends nothing, not even a TLS close."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import hashlib
import json
import os
import re
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path

import kubernetes_asyncio  # noqa: F401  imported here, as it takes seconds
import pytest
import uvloop

from resources.kubernetes.certificates import due
from resources.kubernetes.connection import Access, Connection, _readable
from resources.kubernetes.errors import StatusError, Unconfigured, Unreachable
from tests.support.apiserver import write_kubeconfig
from tests.support.certificates import authority_and_server

PATIENCE = 25.0
"""Seconds; TLS would wait for 30 when it closes in order."""
_OF_WEBSOCKETS = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


@pytest.mark.parametrize("loop", [asyncio.SelectorEventLoop, uvloop.new_event_loop])
@pytest.mark.parametrize("end", ["the time", "the asker"])
def test_a_request_without_a_response_leaves_no_connection(
    end: str, loop: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with _silent_server(tmp_path) as (connection, requested, closed):
            if end == "the time":
                # It may be over before the server has read the request, which is sent by then.
                with pytest.raises(Unreachable, match="no answer in time"):
                    await _ask(connection, 0.05)
            else:
                question = asyncio.create_task(_ask(connection, 60.0))
                await asyncio.wait_for(requested.wait(), PATIENCE)
                question.cancel()
                with suppress(asyncio.CancelledError):
                    await question
            await asyncio.wait_for(closed.wait(), PATIENCE)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(scenario())


@pytest.mark.parametrize("loop", [asyncio.SelectorEventLoop, uvloop.new_event_loop])
@pytest.mark.parametrize("status", [101, 403])
def test_a_websocket_leaves_no_connection(
    status: int, loop: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with _silent_server(tmp_path, status) as (connection, _requested, closed):
            with pytest.raises(StatusError) if status == 403 else nullcontext():
                async with connection.websocket("/exec", (), ()):
                    pass
            await asyncio.wait_for(closed.wait(), PATIENCE)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(scenario())


async def _ask(connection: Connection, silence: float) -> None:
    async with connection.get("/api/v1/nodes", (), silence=silence):
        pytest.fail("there is no answer")


@asynccontextmanager
async def _silent_server(
    directory: Path, websocket: int = 101
) -> AsyncIterator[tuple[Connection, asyncio.Event, asyncio.Event]]:
    """Serve TLS up to one request; signal its arrival, and the close of the connection.

    A handshake of a WebSocket has an answer with a status, any other request none.
    """
    authority, context = authority_and_server(directory, "silent")
    requested, closed = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        shaken = False
        with suppress(ConnectionError):
            while octets := await reader.read(65_536):
                incoming.write(octets)
                with suppress(ssl.SSLWantReadError):
                    if not shaken:
                        tls.do_handshake()
                        shaken = True
                    request = tls.read(65_536)
                    if key := re.search(rb"Sec-WebSocket-Key: (\S+)", request):
                        tls.write(_handshake(websocket, key[1]))
                    requested.set()
                writer.write(outgoing.read())
        closed.set()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    config = directory / "kubeconfig"
    write_kubeconfig(config, f"https://127.0.0.1:{port}", {"token": "t"}, ca=str(authority))
    connection = Connection(Access(str(config)))
    async with listening:
        try:
            yield connection, requested, closed
        finally:
            await connection.close()


def _handshake(status: int, key: bytes) -> bytes:
    """Return the answer to a handshake with a key (RFC 6455, section 4.2.2), without its body."""
    accept = base64.b64encode(hashlib.sha1(key + _OF_WEBSOCKETS).digest()).decode()  # noqa: S324
    body = "" if status == 101 else "Content-Length: 5\r\n"
    return (
        f"HTTP/1.1 {status} -\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Sec-WebSocket-Accept: {accept}\r\n{body}\r\n"
    ).encode()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "No such file or directory"),
        ("{", "it is not YAML in line 2: expected the node content, but found '<stream end>'"),
        ("kind: Config", "Invalid kube-config file. "),
        ("", "it is empty"),
        ("[]", "it is no kubeconfig"),
        ("1", "it is no kubeconfig"),
        ("\udcff\udcfe", "it is not UTF-8 text"),
    ],
)
def test_a_bad_kubeconfig_is_a_sentence_without_names_of_python(
    text: str | None, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_bytes(f"{text}\n".encode(errors="surrogateescape"))

    async def scenario() -> None:
        connection = Connection(Access(str(path)))
        try:
            await _ask(connection, 1.0)
        finally:
            await connection.close()

    with pytest.raises(Unconfigured) as found:
        asyncio.run(scenario())
    assert str(found.value).startswith(f"cannot use kubeconfig {path}: {reason}")
    assert "Error" not in str(found.value)


def test_a_kubeconfig_that_is_a_named_pipe_is_refused(tmp_path: Path) -> None:
    """It is read several times, and its writer may never come."""
    path = tmp_path / "kubeconfig"
    os.mkfifo(path)

    async def scenario() -> None:
        connection = Connection(Access(str(path)))
        try:
            await _ask(connection, 1.0)
        finally:
            await connection.close()

    with pytest.raises(Unconfigured, match="it is a named pipe, whose writer may never come"):
        asyncio.run(scenario())


@pytest.mark.parametrize(
    ("cluster", "user", "field"),
    [
        ({"certificate-authority": "fifo"}, {}, "certificate-authority"),
        ({}, {"client-certificate": "fifo", "client-key": "key"}, "client-certificate"),
        ({}, {"client-certificate": "key", "client-key": "fifo"}, "client-key"),
        ({}, {"tokenFile": "fifo"}, "tokenFile"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("is_second", [False, True])
def test_a_named_pipe_in_a_kubeconfig_is_refused(
    cluster: dict[str, str], user: dict[str, str], field: str, tmp_path: Path, *, is_second: bool
) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "key").write_text("")
    path, first = tmp_path / "kubeconfig", tmp_path / "first"
    first.write_text("apiVersion: v1\nkind: Config\n")
    content = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:1", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(json.dumps(content))
    given = f"{first}{os.pathsep}{path}" if is_second else str(path)

    async def scenario() -> None:
        connection = Connection(Access(given))
        try:
            await asyncio.wait_for(_ask(connection, 1.0), 10)
        finally:
            await connection.close()

    wrong = f"{field}: {tmp_path / 'fifo'}: it is a named pipe, whose writer may never come"
    with pytest.raises(Unconfigured, match=re.escape(wrong)):
        asyncio.run(scenario())


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "users: &users [*users]\n",
        "a0: &a0 []\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
    ],
    ids=["in itself", "many times"],
)
def test_the_aliases_of_a_kubeconfig_are_followed_once(text: str, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    _readable(str(path))


@pytest.mark.parametrize(
    "text",
    [
        "not a certificate\n",
        "",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n",
    ],
)
def test_ca_data_without_a_certificate_is_named_as_such(text: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        ca = tmp_path / "ca.crt"
        ca.write_text(text)
        path = write_kubeconfig(tmp_path / "config", "https://127.0.0.1:1", {}, ca=str(ca))
        connection = Connection(Access(str(path)))
        with pytest.raises(Unconfigured) as caught:
            await _ask(connection, 1.0)
        assert caught.value.reason == (
            "no certificate in certificate-authority or certificate-authority-data"
        )
        await connection.close()

    asyncio.run(scenario())


def test_the_ends_of_the_certificates_by_which_it_connects(tmp_path: Path) -> None:
    now = dt.datetime.now(dt.UTC)
    issued = due(None, now, ("127.0.0.1",), published=False)
    assert issued is not None
    files = {"ca": issued.authorities, "crt": issued.certificate, "key": issued.key}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    user = {"client-certificate": str(tmp_path / "crt"), "client-key": str(tmp_path / "key")}
    ca = str(tmp_path / "ca")
    path = write_kubeconfig(tmp_path / "config", "https://127.0.0.1:1", user, ca=ca)

    async def scenario() -> None:
        connection = Connection(Access(str(path)))
        assert connection.certificate_ends == {}
        with pytest.raises(Unreachable):
            await _ask(connection, 1.0)
        ends = {"client": issued.end, "api-server-authority": issued.end_of_authority}
        assert connection.certificate_ends == {name: t.timestamp() for name, t in ends.items()}
        await connection.close()

    asyncio.run(scenario())
