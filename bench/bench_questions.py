"""Delay of the sessions while questions about a full table are answered, by agent and router.

A peer sends many routes. Then several clients request all of them at once, and read as fast as they
can, while small requests measure how long the event loop is busy: what a keepalive would wait. The
measured program runs on one core, clients and this program on the others. The goal is for the CPU time
of the program between a small request and its answer. Other load of the machine does not change it
where this program may precede all others (root): elsewhere an answer waits until the client has a core,
and what the program does meanwhile is counted.

``python -m bench.bench_questions [--routes N] [--clients N]``
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench import workload
from bench.sink import KEEPALIVE, MARKER
from bench.speed import streams

GOAL_MS = 20.0
EXIT_SECONDS = 2.0
"""From SIGTERM until the exit."""
IDLE_SECONDS = 3.0
START_SECONDS = 120.0
PER_SET = 10
"""Routes of one attribute set."""
SERVICES = 2000
READER = """
import os, socket, sys
os.nice(19)
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
client.sendall(sys.argv[2].replace("\\r\\n", "\\r\\nConnection: close\\r\\n", 1).encode())
size = 0
while data := client.recv(1 << 16):
    size += len(data)
print(size)
"""
"""Reads one answer to its end, and discards it; it gives way to the measuring client, on whose core it
runs."""
TABLES = ("received", "available", "advertised")


def handshake(connection: socket.socket, asn: int) -> None:
    """Send OPEN and KEEPALIVE; the hold time is 0, so that no more are sent."""
    capabilities = bytes((1, 4, 0, 1, 0, 1)) + bytes((65, 4)) + struct.pack("!I", asn)
    parameters = bytes((2, len(capabilities))) + capabilities
    body = struct.pack("!BHH4sB", 4, asn, 0, b"\xc0\0\x02\x01", len(parameters)) + parameters
    connection.sendall(MARKER + struct.pack("!HB", 19 + len(body), 1) + body + KEEPALIVE)


class Feeder:
    """A peer that accepts one session, and sends a table."""

    def __init__(self, routes: int, number: int = 0) -> None:
        """``number`` is that of its address."""
        self._address = workload.peer_address(number)
        self._listener = socket.create_server((self._address, 0))
        self.port: int = self._listener.getsockname()[1]
        self._routes = routes
        self._connection: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def lose(self) -> None:
        """End the session without a word, and accept no other."""
        self._listener.close()
        if self._connection is not None:
            self._connection.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        connection, _ = self._listener.accept()
        self._connection = connection
        handshake(connection, workload.PEER_ASN)
        self._discard = threading.Thread(target=_discard, args=(connection,), daemon=True)
        self._discard.start()
        for start in range(0, self._routes, PER_SET):
            path = [workload.PEER_ASN, 64600 + start % 300, 1 + start]
            attributes = streams.attributes(path, self._address, med=start)
            nlri = streams.host_nlri(streams.FIRST_PREFIX + start, PER_SET)
            connection.sendall(streams.messages(attributes, nlri))


def _discard(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


class Program:
    """A running agent or router, with clients for its small request and its large ones."""

    def __init__(self, directory: Path, command: Sequence[str | Path], core: set[int]) -> None:
        self.socket = directory / "api"
        self._log = (directory / "log").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        os.sched_setaffinity(self.process.pid, core)

    def stop(self) -> float:
        """End the program, if it runs; returns the seconds from SIGTERM until its exit."""
        began = time.monotonic()
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)
        self._log.close()
        return time.monotonic() - began


@contextmanager
def router(
    directory: Path,
    port: int,
    core: set[int],
    neighbors: Sequence[Mapping[str, object]] = (),
    **settings: object,
) -> Iterator[Program]:
    """Run a router that imports all routes of the feeder; ``settings`` are more keys of its file."""
    config = {
        "asn": workload.LOCAL_ASN,
        "routerID": "192.0.2.9",
        "apiSocket": str(directory / "api"),
        "neighbors": [
            {
                "address": workload.peer_address(0),
                "asn": workload.PEER_ASN,
                "port": port,
                "import": "all",
                "connectRetryTime": 1,
            },
            *neighbors,
        ],
        **settings,
    }
    (directory / "router.yaml").write_text(json.dumps(config))
    program = Program(directory, ["waggle", "router", "-c", directory / "router.yaml"], core)
    try:
        yield program
    finally:
        program.stop()


@contextmanager
def agent(directory: Path, port: int, core: set[int]) -> Iterator[Program]:
    """Run an agent with many Services, whose peer is the feeder."""
    workload.write(directory / "manifests", services=SERVICES, peers=1, port=port)
    command: list[str | Path] = ["waggle_agent", "--manifests", directory / "manifests"]
    command += ["--node-name", workload.NODE, "--api-socket", directory / "api"]
    command += ["--log-level", "warning", "--keep-received", "all"]
    program = Program(directory, command, core)
    try:
        yield program
    finally:
        program.stop()


def http_request(question: str) -> str:
    """Return a request for a table, explanations, or the smallest answer."""
    path = f"/v1/routes?table={question}"
    if question == "small":
        path = "/v1/peers?refused=at-once"  # answers are read in turn; a refusal waits for none
    elif question == "explain":
        path = "/v1/explain"
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"


def cpu_clock(pid: int) -> int:
    """Return the clock of the CPU time of a process (clock_getcpuclockid(3))."""
    return (~pid << 3) | 2


@contextmanager
def precedence() -> Iterator[None]:
    """Run this thread as soon as it can, before all others of its core; as root alone (sched(7))."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        real_time = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, real_time, os.sched_param(1))
    except OSError:  # sandboxes have other errors than PermissionError
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


def delays(process: int, path: Path, until: Callable[[], bool]) -> tuple[list[float], list[float]]:
    """Send small requests one after another to the socket ``path`` of a process.

    Returns the milliseconds of each, and of the CPU time of the process.
    """
    elapsed: list[float] = []
    busy: list[float] = []
    clock = cpu_clock(process)
    request = http_request("small").encode()
    with socket.socket(socket.AF_UNIX) as client, precedence():
        client.settimeout(60)
        client.connect(str(path))
        while not until():
            began, cpu = time.monotonic_ns(), time.clock_gettime_ns(clock)
            client.sendall(request)
            client.recv(65536)
            took = (time.monotonic_ns() - began) / 1e6
            elapsed.append(took)
            # The clock of another process may be ahead by a tick of the scheduler.
            busy.append(min(took, (time.clock_gettime_ns(clock) - cpu) / 1e6))
            time.sleep(0.001)
    return elapsed, busy


def listens(path: Path) -> bool:
    """True if the socket accepts connections: a program binds it before it can answer."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def received(path: Path, request: str) -> int:
    """Return the octets of an answer; 0 without one."""
    done = subprocess.run(
        [sys.executable, "-c", READER, str(path), request], stdout=subprocess.PIPE, check=False
    )
    return int(done.stdout or 0)


def wait_received(program: Program, routes: int) -> None:
    """Wait until the table of the feeder has arrived."""
    deadline = time.monotonic() + START_SECONDS
    size = 0
    # A route takes more than a hundred octets.
    while size < routes * 100:
        if time.monotonic() > deadline or program.process.poll() is not None:
            raise RuntimeError("the table has not arrived")
        time.sleep(1)
        if listens(program.socket):
            size = received(program.socket, http_request("received"))


def measure(
    program: Program, questions: Sequence[str], routes: int, clients: int, cores: set[int]
) -> bool:
    """Measure and print; return whether every delay was within the goal."""
    os.sched_setaffinity(0, cores)
    wait_received(program, routes)
    measured = partial(delays, program.process.pid, program.socket)
    end = time.monotonic() + IDLE_SECONDS
    _print("idle", *measured(lambda: time.monotonic() > end), "")
    good = True
    for question in questions:
        command = [sys.executable, "-c", READER, str(program.socket), http_request(question)]
        began = time.monotonic()
        readers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(clients)]
        elapsed, busy = measured(partial(_ended, readers))
        took = time.monotonic() - began
        octets = sum(int(reader.communicate()[0] or 0) for reader in readers)
        _print(question, elapsed, busy, f"{octets / 1e6:.0f} MB in {took:.1f} s")
        good = good and max(busy) <= GOAL_MS
    return good


def _print(name: str, elapsed: Sequence[float], busy: Sequence[float], note: str) -> None:
    middle = statistics.median(busy)
    print(f"{name:>12} {max(busy):9.1f} {middle:8.1f} {max(elapsed):9.1f}   {note}", flush=True)


def _ended(readers: Sequence[subprocess.Popen[bytes]]) -> bool:
    return all(reader.poll() is not None for reader in readers)


def main() -> int:
    """Measure and print; the exit status is 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--routes", type=int, default=300_000, metavar="N")
    parser.add_argument("--clients", type=int, default=4, metavar="N")
    args = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    core, others = {cores[0]}, set(cores[1:]) or {cores[0]}
    good = True
    for start, questions in ((router, TABLES), (agent, (*TABLES, "explain"))):
        with tempfile.TemporaryDirectory() as name:
            print(
                f"{start.__name__}: {args.routes} routes, {args.clients} clients at once; ms of a"
            )
            print(f"{'':12} {'CPU: max':>9} {'median':>8} {'wait: max':>9}   small request")
            feeder = Feeder(args.routes)
            with start(Path(name), feeder.port, core) as program:
                good = measure(program, questions, args.routes, args.clients, others) and good
                took = program.stop()
                print(f"{'SIGTERM':>12} {took:.2f} s until the exit", flush=True)
                good = good and took <= EXIT_SECONDS
    print(f"goals {GOAL_MS:g} ms, and {EXIT_SECONDS:g} s: {'met' if good else 'MISSED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
