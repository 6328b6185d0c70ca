"""Delay of other sessions and questions while a running router, or agent, loses a full table.

A peer sends many routes, of which the router passes all on to a second peer, and ends its session
without a word. From then on an UPDATE goes from a third session through the router to a fourth one, and
a small request to the API, in turns, until they have been quick for some time. The program runs on one
core, all else on the others. An agent passes no routes on: of it requests alone are measured. The goal
is for the CPU time of the program between a probe and its answer, as in `bench.bench_questions`.

``python -m bench.bench_loss_live [--routes N] [--bmp]``
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench import workload
from bench.bench_questions import (
    Feeder,
    Program,
    agent,
    cpu_clock,
    handshake,
    http_request,
    precedence,
    router,
    wait_received,
)
from bench.speed import streams

GOAL_MS = 20.0
QUIET_SECONDS = 3.0
"""Without a turn of `QUIET_MS`, the loss is over."""
QUIET_MS = 2.0
LONGEST_SECONDS = 120.0
PROBED = bytes((32, 203, 0, 113, 7))
"""The prefix of the UPDATEs between two sessions."""


class Session:
    """The other end of a session of the router."""

    def __init__(self, number: int, asn: int) -> None:
        self.address = workload.peer_address(number)
        self.asn = asn
        self._listener = socket.create_server((self.address, 0))
        self.port: int = self._listener.getsockname()[1]

    def accept(self) -> socket.socket:
        """Return the connection, whose OPEN and first messages have been read."""
        connection, _ = self._listener.accept()
        handshake(connection, self.asn)
        connection.settimeout(60)
        return connection


class Echo:
    """An UPDATE from one session to another; each has another MED."""

    def __init__(self) -> None:
        self._source, self._target = Session(1, 64701), Session(2, 64702)
        self._med = 0
        self._connections: list[socket.socket] = []

    @property
    def neighbors(self) -> list[dict[str, object]]:
        """The two neighbours of the router's file."""
        source, target = self._source, self._target
        common: dict[str, object] = {"connectRetryTime": 1}
        return [
            {**common, "name": "source", "address": source.address, "asn": source.asn,
             "port": source.port, "import": "all"},
            {**common, "name": "target", "address": target.address, "asn": target.asn,
             "port": target.port, "export": "probe"},
        ]  # fmt: skip

    def start(self) -> None:
        """Accept both sessions, and wait for the first answer."""
        self._connections = [self._source.accept(), self._target.accept()]
        threading.Thread(target=_drain, args=(self._connections[0],), daemon=True).start()
        time.sleep(1)
        self.probe()

    def probe(self) -> None:
        """Send an UPDATE, and wait for it at the other end."""
        self._med += 1
        source = self._source
        attributes = streams.attributes([source.asn, self._med], source.address)
        wanted = self._med.to_bytes(4, "big")
        sent, received = self._connections
        sent.sendall(streams.messages(attributes, [PROBED]))
        octets = b""
        # The AS path of the route has a number of its own in each round.
        while wanted not in octets or PROBED not in octets[octets.rfind(wanted) :]:
            data = received.recv(65536)
            if not data:
                raise RuntimeError("the probing session has ended")
            octets = (octets + data)[-4096:]


def _collector() -> dict[str, object]:
    """Start a monitoring station that discards all it reads; returns its entry in the file."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: _drain(listener.accept()[0]), daemon=True).start()
    ribs = ["pre-policy", "post-policy", "loc-rib"]
    return {"address": "127.0.0.1", "port": listener.getsockname()[1], "monitor": ribs}


def _drain(connection: socket.socket) -> None:
    connection.settimeout(None)
    while connection.recv(65536):
        pass


class Requests:
    """Small requests to the API."""

    def __init__(self, path: Path) -> None:
        self._client = socket.socket(socket.AF_UNIX)
        self._client.settimeout(60)
        self._client.connect(str(path))
        self._request = http_request("small").encode()

    def probe(self) -> None:
        """Send a request, and wait for its answer."""
        self._client.sendall(self._request)
        self._client.recv(65536)


def delays(
    program: Program, probes: dict[str, Callable[[], None]]
) -> dict[str, list[tuple[float, float]]]:
    """Send probes in turns until the program is quiet; returns wait and CPU of each, in ms."""
    clock = cpu_clock(program.process.pid)
    delays: dict[str, list[tuple[float, float]]] = {name: [] for name in probes}
    quiet_since = began = time.monotonic()
    with precedence():
        while time.monotonic() - quiet_since < QUIET_SECONDS:
            for name, probe in probes.items():
                start, cpu = time.monotonic_ns(), time.clock_gettime_ns(clock)
                probe()
                wait = (time.monotonic_ns() - start) / 1e6
                busy = min(wait, (time.clock_gettime_ns(clock) - cpu) / 1e6)
                delays[name].append((wait, busy))
                if busy > QUIET_MS:
                    quiet_since = time.monotonic()
                time.sleep(0.001)
            if time.monotonic() - began > LONGEST_SECONDS:
                raise RuntimeError("the program does not become quiet")
    return delays


def measure(program: Program, feeder: Feeder, routes: int, echo: Echo | None) -> bool:
    """Measure and print one program; return whether every delay was within the goal."""
    wait_received(program, routes)
    probes: dict[str, Callable[[], None]] = {"request": Requests(program.socket).probe}
    if echo is not None:
        echo.start()
        probes["UPDATE"] = echo.probe
    good = True
    for moment in ("before", "loss"):
        cpu = time.clock_gettime_ns(cpu_clock(program.process.pid))
        if moment == "loss":
            feeder.lose()
        for name, pairs in delays(program, probes).items():
            longest, busy = (max(column) for column in zip(*pairs, strict=True))
            middle = statistics.median(busy for _, busy in pairs)
            print(f"{moment:>8} {name:>8} {busy:9.1f} {middle:8.1f} {longest:9.1f}", flush=True)
            good = good and (moment == "before" or busy <= GOAL_MS)
        spent = (time.clock_gettime_ns(cpu_clock(program.process.pid)) - cpu) / 1e9
    print(f"{spent:.2f} s of CPU after the loss, and for the probes")
    return good


def main() -> int:
    """Measure and print; the exit status is 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--routes", type=int, default=500_000, metavar="N")
    parser.add_argument("--bmp", action="store_true", help="with a monitoring station of all RIBs")
    args = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    core, others = {cores[0]}, set(cores[1:]) or {cores[0]}
    os.sched_setaffinity(0, others)
    print(f"load {os.getloadavg()[0]:.1f}, {args.routes} routes; ms of a probe")
    print(f"{'':17} {'CPU: max':>9} {'median':>8} {'wait: max':>9}")
    good = True
    feeder, receiver, echo = Feeder(args.routes), Feeder(0, 3), Echo()
    passed_on = {
        "address": workload.peer_address(3), "asn": workload.PEER_ASN, "port": receiver.port,
        "export": "all", "connectRetryTime": 1,
    }  # fmt: skip
    settings: dict[str, object] = {
        "policies": {"probe": {"terms": [{"match": {"neighbors": ["source"]}}]}}
    }
    if args.bmp:
        settings["bmp"] = {"collectors": [_collector()]}
    with tempfile.TemporaryDirectory() as name:
        neighbors = [passed_on, *echo.neighbors]
        with router(Path(name), feeder.port, core, neighbors, **settings) as program:
            print("router")
            good = measure(program, feeder, args.routes, echo)
    with tempfile.TemporaryDirectory() as name:
        feeder = Feeder(args.routes)
        with agent(Path(name), feeder.port, core) as program:
            print("agent")
            good = measure(program, feeder, args.routes, None) and good
    print(f"goal {GOAL_MS:g} ms: {'met' if good else 'MISSED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
