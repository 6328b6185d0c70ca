"""A stand-in for kubelets: takes exec requests of a real API server, and runs the commands here.

The API server translates the client's WebSocket to SPDY/3.1, which kubelets speak: its client opens the
streams error, stdout and stderr, in this order. One server stands for the kubelets of all nodes.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import struct
import subprocess
import sys
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from cells.observability.http_connections import close_server
from tests.support.background_loop import BackgroundLoop

SYN_STREAM, SYN_REPLY, PING = 1, 2, 6
FIN = 1
STREAMS = 3
PROTOCOL = "v4.channel.k8s.io"
Write = Callable[[int, bytes], Awaitable[None]]
"""Writes to standard output (1) or standard error (2)."""
Run = Callable[[str, list[str], Write], Awaitable[int]]
"""Runs a command in the container of a Pod; returns its exit status."""


class Kubelet:
    """A server on loopback with a thread of its own; a context manager."""

    def __init__(self, run: Run, directory: Path) -> None:
        self._run = run
        self._loop = BackgroundLoop("kubelet")
        self._certificate = directory / "kubelet.pem"
        self.port = 0

    def __enter__(self) -> Self:
        """Start with a certificate of its own, which the API server does not check."""
        command = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=kubelet",
        ]
        files: list[str | Path] = ["-keyout", self._certificate, "-out", f"{self._certificate}.crt"]
        subprocess.run([*command, *files], check=True, capture_output=True)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(f"{self._certificate}.crt", self._certificate)

        async def start() -> asyncio.Server:
            return await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)

        self._loop.__enter__()
        self._server = self._loop.do(start())
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, with what still runs."""
        try:
            self._loop.do(close_server(self._server))
        finally:
            self._loop.__exit__()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            url = urlsplit(head.split(" ", 2)[1])
            _, _, _, pod, _ = url.path.split("/")  # /exec/NAMESPACE/POD/CONTAINER
            switch = (
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
                f"X-Stream-Protocol-Version: {PROTOCOL}\r\n\r\n"
            )
            writer.write(switch.encode())
            streams: list[int] = []
            headers = zlib.compressobj()  # one stream for all frames of a connection
            while len(streams) < STREAMS:
                streams += await _accept(reader, writer, headers)
            pings = asyncio.ensure_future(_answer(reader, writer, headers))

            async def write(number: int, octets: bytes) -> None:
                for start in range(0, len(octets), 32768):
                    writer.write(_data(streams[number], octets[start : start + 32768]))
                await writer.drain()

            status = await self._run(pod, parse_qs(url.query)["command"], write)
            writer.write(_data(streams[0], json.dumps(_result(status)).encode()))
            writer.writelines(_data(stream, b"", FIN) for stream in streams)
            await writer.drain()
            await asyncio.wait([pings], timeout=60)
            pings.cancel()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()


async def _accept(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    headers: Any,  # noqa: ANN401  a compressor
) -> list[int]:
    """Read a frame; returns the stream that it opens, if it opens one."""
    first, second = struct.unpack("!II", await reader.readexactly(8))
    body = await reader.readexactly(second & 0xFFFFFF)
    if first == 0x80030000 | PING:
        writer.write(struct.pack("!II", first, second) + body)
    if first != 0x80030000 | SYN_STREAM:
        return []
    none = headers.compress(bytes(4)) + headers.flush(zlib.Z_SYNC_FLUSH)
    stream = body[:4] + none
    writer.write(struct.pack("!II", 0x80030000 | SYN_REPLY, len(stream)) + stream)
    return [int.from_bytes(body[:4])]


async def _answer(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    headers: Any,  # noqa: ANN401
) -> None:
    while True:
        await _accept(reader, writer, headers)


def _data(stream: int, octets: bytes, flags: int = 0) -> bytes:
    return struct.pack("!II", stream, flags << 24 | len(octets)) + octets


def _result(status: int) -> dict[str, Any]:
    if status == 0:
        return {"metadata": {}, "status": "Success"}
    message = f"command terminated with non-zero exit code: exit status {status}"
    causes = [{"reason": "ExitCode", "message": str(status)}]
    failure = {"status": "Failure", "reason": "NonZeroExitCode", "message": message}
    return {"metadata": {}, **failure, "details": {"causes": causes}}


def node(name: str, port: int) -> dict[str, Any]:
    """Return a Node whose kubelet is here."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        },
    }


def agent_pod(name: str, node: str, namespace: str) -> dict[str, Any]:
    """Return the Pod of an agent, with the chart's labels."""
    labels = {"part-of": "waggle", "component": "agent"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {f"app.kubernetes.io/{key}": value for key, value in labels.items()},
        },
        "spec": {"nodeName": node, "containers": [{"name": "agent", "image": "waggle"}]},
    }


async def run_here(command: list[str], socket: Path, write: Write) -> int:
    """Run ``waggle`` as a program of its own, with the agent at a socket; returns its status."""
    environment = {**os.environ, "WAGGLE_API_SOCKET": str(socket)}
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *command),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await program.communicate()
    await write(1, output)
    await write(2, errors)
    return program.returncode or 0
