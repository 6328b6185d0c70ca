"""The floor of a change by a router's own interface: small requests over a Unix socket that do nothing.

The request is that of P3 by Waggle's own interface (`bench.speed`), on one connection, with the same
pauses. It is answered in four ways, each in a process of its own:

* ``octets``: a protocol that sends the same octets for whatever it receives
* ``lines``: the same with a line of JSON in place of HTTP
* ``waggle``: the connections of the local API with `cells.serve.direct_actions`, and an action that
  does nothing
* ``aiohttp``: the server of that library, without routes, and a handler that does nothing

Printed are medians, from the sending of a request until its answer has been read, and the processor
time of the process that answers. A change by the own interface is one of P3 from a feeder and one of
``waggle``.

``python -m bench.least_http [--requests N] [--pause MILLISECONDS] [--rounds N]``
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, NamedTuple, cast

import msgspec
import uvloop
from aiohttp import web

from cells.api.resource import ApiAction
from cells.observability.http_connections import Connections
from cells.serve.answers import listed
from cells.serve.direct_actions import DirectActions

ROOT: Final = Path(__file__).resolve().parent.parent
KIND: Final = "PrefixChangeList"
BODY: Final = b'{"prefixes": ["192.0.2.1/32"]}'
REQUEST: Final = b"POST /v1/announce HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (
    len(BODY),
    BODY,
)
LINE: Final = b'{"op": "announce", "prefixes": ["192.0.2.1/32"]}\n'
ANSWERED_LINE: Final = b'{"ok":true,"changed":1}\n'
ITEMS: Final = ({"changed": 1, "absent": []},)
READY: Final = b"ready\n"
_ANSWER: Final = 4096


class Body(msgspec.Struct):
    """As of an announcement."""

    prefixes: list[str]


class Octets(asyncio.Protocol):
    """Sends the same octets for whatever it receives."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport (asyncio)."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer (asyncio)."""
        del data
        self._transport.write(self._answer)


async def _octets() -> Callable[[], asyncio.Protocol]:
    body = listed(KIND, ITEMS)
    return functools.partial(
        Octets, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    )


async def _lines() -> Callable[[], asyncio.Protocol]:
    return functools.partial(Octets, ANSWERED_LINE)


async def _waggle() -> Callable[[], asyncio.Protocol]:
    action = ApiAction(path="/v1/announce", kind=KIND, body=Body, run=lambda _: ITEMS)
    connections = Connections(DirectActions([action]).answer, timed=False)
    return functools.partial(connections.new, await _aiohttp())


async def _aiohttp() -> Callable[[], asyncio.Protocol]:
    async def nothing(request: web.BaseRequest) -> web.Response:
        await request.read()
        return web.Response(body=listed(KIND, ITEMS), content_type="application/json")

    return web.Server(nothing, access_log=None)


class Way(NamedTuple):
    """One way in which requests are answered."""

    protocol: Callable[[], Awaitable[Callable[[], asyncio.Protocol]]]
    request: bytes = REQUEST
    end: bytes = b"}"
    """Of the answer."""


WAYS: Final = {
    "lines": Way(_lines, LINE, b"\n"),
    "octets": Way(_octets),
    "waggle": Way(_waggle),
    "aiohttp": Way(_aiohttp),
}


class Figures(NamedTuple):
    """Milliseconds of one request."""

    median: float
    cpu: float


def serve(way: str, path: str) -> None:
    """Answer in one way, until the process is ended."""

    async def run() -> None:
        protocol = await WAYS[way].protocol()
        async with await asyncio.get_running_loop().create_unix_server(protocol, path):
            sys.stdout.buffer.write(READY)
            sys.stdout.flush()
            await asyncio.Event().wait()

    uvloop.run(run())


def measure(way: str, requests: int, pause: float) -> Figures:
    """Return the figures of one way, in a process of its own; ``pause`` in seconds."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "socket"
        command = [sys.executable, "-m", "bench.least_http", "--serve", way, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as server:
            try:
                assert server.stdout is not None
                if server.stdout.readline() != READY:
                    raise RuntimeError(f"the process that answers as {way} did not start")
                with socket.socket(socket.AF_UNIX) as client:
                    client.settimeout(30)
                    client.connect(str(path))
                    for _ in range(20):
                        request(client, way)
                    before = _cpu(server.pid)
                    took = []
                    for _ in range(requests):
                        time.sleep(pause)
                        took.append(request(client, way))
                    spent = _cpu(server.pid) - before
            finally:
                server.kill()
    return Figures(statistics.median(took) * 1e3, spent / requests * 1e3)


def request(client: socket.socket, way: str) -> float:
    """Send a request, and return the seconds until its answer has been read."""
    began = time.perf_counter()
    client.sendall(WAYS[way].request)
    answer = b""
    while not answer.endswith(WAYS[way].end):
        part = client.recv(_ANSWER)
        if not part:
            raise ConnectionResetError(f"{way}: no answer")
        answer += part
    return time.perf_counter() - began


def _cpu(pid: int) -> float:
    """Return the processor time of a process's threads, in seconds."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def main() -> int:
    """Measure in turns, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=500, metavar="N")
    parser.add_argument("--pause", type=float, default=10.0, metavar="MILLISECONDS")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--serve", nargs=2, metavar=("WAY", "SOCKET"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve is not None:
        serve(*args.serve)
        return 0
    figures: dict[str, list[Figures]] = {way: [] for way in WAYS}
    for _ in range(args.rounds):
        for way, measured in figures.items():
            measured.append(measure(way, args.requests, args.pause / 1e3))
    print(f"{args.rounds} rounds of {args.requests} requests, {args.pause:g} ms between two")
    for way, measured in figures.items():
        median = statistics.median(each.median for each in measured)
        cpu = statistics.median(each.cpu for each in measured)
        print(f"{way:8} {median:.3f} ms, CPU {cpu:.3f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
