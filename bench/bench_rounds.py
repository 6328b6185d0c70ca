"""Sessions of an agent while all prefixes of one large object change: nothing may stop them.

An FRRConfiguration advertises many prefixes to a peer with a hold time of 3 seconds. Then their
community changes, and after that one prefix. Measured until the peer has every route again: the CPU
time of the agent between a small request and its answer, which is what another session waits, the
pauses between the octets that the peer receives, and whether its session is lost.

``python -m bench.bench_rounds [--prefixes N]``
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench import frrk8s_workload as workload
from bench.bench_questions import cpu_clock, delays
from bench.sink import KEEPALIVE, MARKER

GOAL_MS: Final = 50.0
HOLD_SECONDS: Final = 3
PORTS: Final = range(10179, 16385)
"""Of the peer: FRR-k8s permits ports up to 16384, and measurements may run side by side."""
START_SECONDS: Final = 180.0
QUIET_SECONDS: Final = 1.5
AGENT: Final = [sys.executable, "-m", "waggle_agent"]


class Peer:
    """Accepts sessions, keeps them alive, and notes what it receives."""

    def __init__(self, hold_seconds: int = HOLD_SECONDS, addresses: int = 1) -> None:
        self._hold_seconds = hold_seconds
        self._listeners = _listen([workload.peer_address(number) for number in range(addresses)])
        self.port: int = self._listeners[0].getsockname()[1]
        self.sessions = 0
        self.octets = 0
        self.last = 0.0
        """When octets other than a KEEPALIVE were received."""
        self.pause = 0.0
        """The longest time without octets; ``mark`` begins anew."""
        self._heard = 0.0
        for listener in self._listeners:
            threading.Thread(target=self._run, args=(listener,), daemon=True).start()

    def mark(self) -> None:
        """Forget the pauses until now."""
        self._heard, self.pause = time.monotonic(), 0.0

    def _run(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def close(self) -> None:
        """Accept no more sessions."""
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self._session(connection)

    def _session(self, connection: socket.socket) -> None:
        capabilities = bytes((1, 4, 0, 1, 0, 1)) + bytes((65, 4))
        capabilities += struct.pack("!I", workload.PEER_ASN)
        parameters = bytes((2, len(capabilities))) + capabilities
        router = b"\xc0\0\x02\x01"
        body = struct.pack(
            "!BHH4sB", 4, workload.PEER_ASN, self._hold_seconds, router, len(parameters)
        )
        size = 19 + len(body) + len(parameters)
        connection.sendall(MARKER + struct.pack("!HB", size, 1) + body + parameters + KEEPALIVE)
        connection.settimeout(0.2)
        self.sessions += 1
        sent = self._heard = time.monotonic()
        while True:
            now = time.monotonic()
            if now - sent > self._hold_seconds / 3:
                connection.sendall(KEEPALIVE)
                sent = now
            try:
                data = connection.recv(1 << 18)
            except TimeoutError:
                continue
            if not data:
                return
            now = time.monotonic()
            self.pause = max(self.pause, now - self._heard)
            self._heard = now
            self.octets += len(data)
            if len(data) != len(KEEPALIVE):
                self.last = now


def _listen(addresses: Sequence[str]) -> list[socket.socket]:
    """Listen on the first port that is free on each address."""
    for port in PORTS:
        with contextlib.ExitStack() as opened:
            try:
                listeners = [
                    opened.enter_context(socket.create_server((address, port)))
                    for address in addresses
                ]
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                continue
            opened.pop_all()
            return listeners
    raise RuntimeError(f"{', '.join(addresses)}: no port of {PORTS} is free")


def write(directory: Path, prefixes: int, port: int, community: int, *, more: int = 0) -> None:
    """Write the manifests: one object with all prefixes."""
    configuration = workload.advertising(
        0, [workload.prefix(number) for number in range(prefixes + more)], 1, port=port
    )
    (router,) = configuration["spec"]["bgp"]["routers"]
    (neighbor,) = router["neighbors"]
    neighbor["holdTime"], neighbor["keepaliveTime"] = f"{HOLD_SECONDS}s", "1s"
    neighbor["toAdvertise"]["withCommunity"][0]["community"] = f"65001:{community}"
    items = [workload.node(), configuration]
    fresh = directory.parent / "new.json"
    fresh.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    fresh.replace(directory / "all.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status is 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--prefixes", type=int, default=100_000, metavar="N")
    parser.add_argument("--agent", nargs="+", default=AGENT, help="the command that runs it")
    args = parser.parse_args(arguments)
    os.environ.setdefault("PYTHONPATH", os.pathsep.join((".", "cmd")))
    good = True
    with tempfile.TemporaryDirectory() as name:
        peer = Peer()
        directory = Path(name) / "manifests"
        directory.mkdir()
        write(directory, args.prefixes, peer.port, 100)
        api = Path(name) / "api"
        command = [*args.agent, "--manifests", directory, "--node-name", workload.NODE]
        command += ["--enable-cell", "frrk8s", "--api-socket", api, "--log-level", "warning"]
        with (Path(name) / "log").open("wb") as log:
            agent = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            _wait(agent, lambda: peer.octets > 4 * args.prefixes and _is_quiet(peer))
            print(
                f"{args.prefixes} prefixes of one object, a session with hold time {HOLD_SECONDS} s"
            )
            for text, community, more in (
                ("another community", 200, 0),
                ("one prefix more", 200, 1),
                ("one prefix less", 200, 0),
            ):
                peer.mark()
                sessions, octets = peer.sessions, peer.octets
                cpu = time.clock_gettime(cpu_clock(agent.pid))
                began = time.monotonic()
                write(directory, args.prefixes, peer.port, community, more=more)
                changed = _Changed(peer, octets)
                elapsed, turns = delays(agent.pid, api, changed)
                print(
                    f"{text:>18}: {1e3 * (peer.last - began):6.0f} ms until the last route, "
                    f"CPU {1e3 * (time.clock_gettime(cpu_clock(agent.pid)) - cpu):6.0f} ms; "
                    f"longest turn {max(turns):5.0f} ms of CPU, {max(elapsed):5.0f} ms; "
                    f"sessions lost {peer.sessions - sessions}; longest pause {peer.pause:.1f} s",
                    flush=True,
                )
                good = good and max(turns) <= GOAL_MS and peer.sessions == sessions
        finally:
            agent.terminate()
            agent.wait(20)
            sys.stderr.write((Path(name) / "log").read_text()[-2000:])
    print(f"goal {GOAL_MS:g} ms, and no session lost: {'met' if good else 'MISSED'}")
    return 0 if good else 1


class _Changed:
    """True once the peer has received a change, and nothing more for a while."""

    def __init__(self, peer: Peer, octets: int) -> None:
        self._peer = peer
        self._before = peer.last
        self._octets = octets
        self._deadline = time.monotonic() + START_SECONDS

    def __call__(self) -> bool:
        if time.monotonic() > self._deadline:
            raise RuntimeError("the change has not arrived")
        return self._peer.last != self._before and _is_quiet(self._peer)


def _is_quiet(peer: Peer) -> bool:
    return time.monotonic() - peer.last > QUIET_SECONDS


def _wait(agent: subprocess.Popen[bytes], until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not until():
        if time.monotonic() > deadline or agent.poll() is not None:
            raise RuntimeError("the routes have not arrived")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
