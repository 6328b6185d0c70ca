"""P3 of two routers side by side: another checkout and this one, a change of each in turn.

A feeder announces and withdraws one prefix of a router, with 10,000 present and a pause before each
change, until ten peers have received it, as in `bench.speed`; then it is the other router's turn. With
``--own`` the router originates the prefix itself, for a request to its local API. A busy machine slows
both alike, and its speed drifts by more than what two versions differ by: one after the other they
cannot be compared that closely. Two processes of one program differ by a few hundredths, by where their
memory lies: all are started again several times, and the median of the ratios is printed, with the
ratio of two routers of this checkout beside it.

The processor time decides. The time is that of reading with this program, which needs longer than the
tester of `bench.speed`.

``python -m bench.bench_change CHECKOUT [--own] [--pure] [--restarts N] [--changes N] [--limit LIMIT]``
"""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import json
import os
import random
import selectors
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.bench_propagation import cores, cpu_ms
from bench.speed import streams
from tests.support.ports import free_port

ROOT: Final = Path(__file__).resolve().parent.parent
PEERS: Final = 10
PRESENT: Final = 10_000
PER_UPDATE: Final = 800
PAUSE: Final = (0.005, 0.035)
"""Seconds before a change: caches are as cold as in a router that has little to do."""
HOLD_TIME: Final = 3600
"""No KEEPALIVE is due in a run."""
SECONDS: Final = 30
"""For a connection, and for each change."""


class Program(NamedTuple):
    """How a router is started; its arguments follow the command."""

    command: Sequence[str | Path]
    directory: Path = ROOT
    environment: Mapping[str, str] = {}
    has_http: bool = True
    """Whether its local API is HTTP; before, a request was a line of JSON."""


class Figures(NamedTuple):
    """Of one change, in ms."""

    time: float
    cpu: float


def of_checkout(root: Path, *, pure: bool) -> Program:
    """Return the router of a checkout, with its own virtual environment."""
    environment = {"PYTHONPATH": f"{root}:{root / 'cmd'}"}
    if pure and (root / "speaker/rib/prefix_table").is_dir():
        environment["WAGGLE_PURE"] = "1"  # an earlier version refuses an unknown variable
    command = (root / ".venv/bin/python", "-m", "waggle")
    return Program(command, root, environment, (root / "cells/serve/direct_actions.py").exists())


class Feeder:
    """Announces and withdraws the prefix as a peer of the router does."""

    def __init__(self, session: socket.socket, attributes: bytes) -> None:
        self._session = session
        nlri = b"\x20" + streams.PING_PREFIX.to_bytes(4, "big")
        self._messages = (
            streams.update(b"", attributes, nlri),
            streams.update(nlri, b"", b""),
        )

    def send(self, step: int) -> None:
        """Send a change."""
        self._session.sendall(self._messages[step % 2])

    def finish(self) -> None:
        """Nothing is answered."""


class LocalApi:
    """Announces and withdraws the prefix by requests to the local API of the router."""

    def __init__(self, path: Path, *, has_http: bool) -> None:
        """Connect. Raises TimeoutError without a router."""
        prefixes = [f"{ipaddress.IPv4Address(streams.PING_PREFIX)}/32"]
        actions = ("announce", "withdraw")
        self._accepted = b'{"ok":true' if not has_http else b"HTTP/1.1 200 "
        if has_http:
            body = json.dumps({"prefixes": prefixes}).encode()
            head = "POST /v1/{} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n"
            self._requests = [head.format(name, len(body)).encode() + body for name in actions]
        else:
            self._requests = [
                json.dumps({"op": name, "prefixes": prefixes}).encode() + b"\n" for name in actions
            ]
        self._session = socket.socket(socket.AF_UNIX)
        self._session.settimeout(SECONDS)
        deadline = time.monotonic() + SECONDS
        while True:
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                self._session.connect(str(path))
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"no local API at {path}")
            time.sleep(0.1)

    def _answer(self) -> bytes:
        answer = b""
        while not answer.rstrip().endswith(b"}"):
            part = self._session.recv(4096)
            if not part:
                raise ConnectionResetError("the router has closed the connection of its local API")
            answer += part
        return answer

    def send(self, step: int) -> None:
        """Send a change."""
        self._session.sendall(self._requests[step % 2])

    def finish(self) -> None:
        """Read the answer. Raises RuntimeError for one of a request that is refused."""
        answer = self._answer()
        if not answer.replace(b" ", b"").startswith(self._accepted.replace(b" ", b"")):
            raise RuntimeError(f"the router refused a change: {answer!r}")

    def close(self) -> None:
        """Close the connection."""
        self._session.close()


class Router:
    """A router with Established sessions of one feeder and ten peers that read."""

    def __init__(self, pid: int, number: int, port: int, api: LocalApi | None = None) -> None:
        self._pid = pid
        self._port = port
        self._selector = selectors.DefaultSelector()
        self._address = f"127.78.{number}.1"
        self._sessions = [self._session(number, last) for last in range(2, PEERS + 3)]
        self._feeder = self._sessions[0]
        for session in self._sessions[1:]:
            session.setblocking(False)
            self._selector.register(session, selectors.EVENT_READ, bytearray())
        attributes = streams.attributes([65002], f"127.78.{number}.2")
        self._fill(attributes)
        self._source = Feeder(self._feeder, attributes) if api is None else api
        self.figures: list[Figures] = []

    @staticmethod
    def configuration(number: int, port: int) -> dict[str, object]:
        """Return the configuration of a router by its number."""
        address = f"127.78.{number}.1"
        return {
            "asn": 65000,
            "routerID": address,
            "listen": [{"address": address, "port": port}],
            "neighbors": [
                {
                    "address": f"127.78.{number}.{last}",
                    "asn": 65000 + last,
                    "passive": True,
                    "families": ["ipv4-unicast"],
                    "import": "all",
                    "export": "none" if last == 2 else "all",
                }
                for last in range(2, PEERS + 3)
            ],
        }

    def _session(self, number: int, last: int) -> socket.socket:
        """Connect, and send OPEN and KEEPALIVE. Raises TimeoutError without a router."""
        source = f"127.78.{number}.{last}"
        deadline = time.monotonic() + SECONDS
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                session = socket.create_connection(
                    (self._address, self._port), SECONDS, (source, 0)
                )
                break
            if time.monotonic() > deadline:
                raise TimeoutError(f"no router at {self._address} port {self._port}")
            time.sleep(0.1)
        session.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        capabilities = bytes((1, 4, 0, 1, 0, 1, 65, 4)) + struct.pack("!I", 65000 + last)
        options = bytes((2, len(capabilities))) + capabilities
        body = struct.pack(
            "!BHH4sB", 4, 65000 + last, HOLD_TIME, socket.inet_aton(source), len(options)
        )
        session.sendall(_message(1, body + options) + _message(4))
        return session

    def _fill(self, attributes: bytes) -> None:
        """Advertise the prefixes that are present, until all peers have received them."""
        prefixes = [
            b"\x20" + (streams.FIRST_PREFIX + number).to_bytes(4, "big")
            for number in range(PRESENT)
        ]
        for start in range(0, PRESENT, PER_UPDATE):
            some = b"".join(prefixes[start : start + PER_UPDATE])
            self._feeder.sendall(streams.update(b"", attributes, some))
        # The last prefix is in the last UPDATE that a peer receives.
        self._read(prefixes[-1])

    def _read(self, nlri: bytes) -> None:
        """Read until each peer has received an UPDATE that ends with a prefix."""
        waiting = {key.fd for key in self._selector.get_map().values()}
        deadline = time.monotonic() + SECONDS
        while waiting:
            events = self._selector.select(deadline - time.monotonic())
            if not events:
                raise TimeoutError(f"{len(waiting)} peers have not received the change")
            for key, _ in events:
                assert isinstance(key.fileobj, socket.socket)
                octets = key.fileobj.recv(1 << 20)
                if not octets:
                    raise ConnectionResetError("the router has closed a connection")
                key.data.extend(octets)
                for message in _messages(key.data):
                    if message[18] == 2 and nlri in message:
                        waiting.discard(key.fd)

    def change(self, step: int) -> None:
        """Send a change, and note its time and processor time when the peers have received it."""
        before = cpu_ms(self._pid)
        began = time.perf_counter()
        self._source.send(step)
        self._read(streams.PING_PREFIX.to_bytes(4, "big"))
        took = (time.perf_counter() - began) * 1e3
        self._source.finish()
        time.sleep(0.002)  # the rest of its turn
        self.figures.append(Figures(took, cpu_ms(self._pid) - before))

    def close(self) -> None:
        """Close all connections."""
        self._selector.close()
        for session in self._sessions:
            session.close()


def _message(kind: int, body: bytes = b"") -> bytes:
    return streams.MARKER + struct.pack("!HB", 19 + len(body), kind) + body


def _messages(data: bytearray) -> Iterator[bytes]:
    """Take the messages that are complete."""
    while len(data) >= 19:
        length = int.from_bytes(data[16:18], "big")
        if len(data) < length:
            return
        yield bytes(data[:length])
        del data[:length]


@contextlib.contextmanager
def _running(program: Program, number: int, core: set[int], *, own: bool) -> Iterator[Router]:
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("w+") as log:
        file = Path(folder) / "router.yaml"
        port = free_port(f"127.78.{number}.1")
        socket_path = Path(folder) / "api"
        document = {**Router.configuration(number, port), "apiSocket": str(socket_path)}
        file.write_text(json.dumps(document))  # JSON is YAML
        process = subprocess.Popen(
            [*program.command, "router", "-c", file],
            cwd=program.directory,
            env={**os.environ, **program.environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        os.sched_setaffinity(process.pid, core)
        try:
            with contextlib.ExitStack() as stack:
                api = None
                if own:
                    api = LocalApi(socket_path, has_http=program.has_http)
                    stack.callback(api.close)
                router = Router(process.pid, number, port, api)
                stack.callback(router.close)
                yield router
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read()[-4000:])
            raise
        finally:
            process.terminate()
            process.wait(20)


def measure(
    programs: Mapping[str, Program], *, restarts: int, changes: int, own: bool = False
) -> dict[str, list[Figures]]:
    """Return the medians of each router's changes, for each start of all of them."""
    chance = random.Random(1)  # noqa: S311  the pauses of every run are the same
    core, others = cores()
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, others)
    measured: dict[str, list[Figures]] = {name: [] for name in programs}
    try:
        for _ in range(restarts):
            with contextlib.ExitStack() as stack:
                names = [*programs]
                chance.shuffle(names)  # none is always the first to get its memory
                routers = {
                    name: stack.enter_context(_running(programs[name], number, core, own=own))
                    for number, name in enumerate(names)
                }
                for step in range(changes):
                    chance.shuffle(names)
                    for name in names:
                        time.sleep(chance.uniform(*PAUSE))
                        routers[name].change(step)
                for name, router in routers.items():
                    columns = zip(*router.figures[10:], strict=True)
                    measured[name].append(Figures(*map(statistics.median, columns)))
    finally:
        os.sched_setaffinity(0, allowed)
    return measured


def report(measured: Mapping[str, Sequence[Figures]]) -> dict[str, Figures]:
    """Print the medians, and the ratios to the first router; returns the medians of the ratios."""
    first = next(iter(measured.values()))
    print(
        f"{'P3, medians of starts':<24} {'time':>7} {'ratio':>6} {'CPU':>7} {'ratio':>6}  range of CPU"
    )
    ratios = {}
    for name, figures in measured.items():
        pairs = [
            Figures(own.time / of.time, own.cpu / of.cpu)
            for own, of in zip(figures, first, strict=True)
        ]
        ratio = ratios[name] = Figures(*map(statistics.median, zip(*pairs, strict=True)))
        took, used = map(statistics.median, zip(*figures, strict=True))
        least, most = min(pair.cpu for pair in pairs), max(pair.cpu for pair in pairs)
        print(
            f"{name:<24} {took:>7.3f} {ratio.time:>6.3f} {used:>7.3f} {ratio.cpu:>6.3f}"
            f"  {least:.3f} to {most:.3f}"
        )
    return ratios


def main() -> int:
    """Measure and print; exit status 1 if this checkout needs more processor time than the limit."""
    parser = argparse.ArgumentParser(
        prog="bench.bench_change", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("checkout", type=Path, help="the other checkout")
    parser.add_argument("--own", action="store_true", help="changes by the local API")
    parser.add_argument("--pure", action="store_true", help="both with prefix tables in Python")
    parser.add_argument("--restarts", type=int, default=7, metavar="N")
    parser.add_argument("--changes", type=int, default=200, metavar="N", help="for each router")
    parser.add_argument("--limit", type=float, default=1.05)
    args = parser.parse_args()
    this = of_checkout(ROOT, pure=args.pure)
    programs = {
        "the other checkout": of_checkout(args.checkout.resolve(), pure=args.pure),
        "this one": this,
        "this one, once more": this,
    }
    measured = measure(programs, restarts=args.restarts, changes=args.changes, own=args.own)
    ratios = report(measured)
    return 0 if ratios["this one"].cpu <= args.limit else 1


if __name__ == "__main__":
    sys.exit(main())
