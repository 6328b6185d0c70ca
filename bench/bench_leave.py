"""Memory of the router while all of its peers leave at once.

A hundred peers announce distinct prefixes and receive all others'. Then all connections are
closed in one moment. Measured: the peak of the resident memory from then on, in relation to before.

``python -m bench.bench_leave [--peers N] [--prefixes N]``
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.sink import KEEPALIVE, MARKER
from bench.speed import streams

GOAL = 1.2
FIRST_ASN = 64600
START_SECONDS = 120.0
SETTLE_SECONDS = 3.0
LEAVE_SECONDS = 10.0


def open_message(asn: int) -> bytes:
    """Return an OPEN with a hold time of 0."""
    capabilities = bytes((1, 4, 0, 1, 0, 1)) + bytes((65, 4)) + struct.pack("!I", asn)
    parameters = bytes((2, len(capabilities))) + capabilities
    body = struct.pack("!BHHIB", 4, asn, 0, asn, len(parameters))
    size = 19 + len(body) + len(parameters)
    return MARKER + struct.pack("!HB", size, 1) + body + parameters


class Peers:
    """Sessions that were accepted from the router, in one loop."""

    def __init__(self, number: int, prefixes: int) -> None:
        self._number = number
        self._prefixes = prefixes
        self._selector = selectors.DefaultSelector()
        self._waiting: dict[socket.socket, bytes] = {}
        self.received = 0
        """Octets of all sessions."""
        self.port = 0
        for peer in range(number):
            listener = socket.create_server((address(peer), self.port))
            self.port = listener.getsockname()[1]
            listener.setblocking(False)
            self._selector.register(listener, selectors.EVENT_READ, peer)

    def run(self, seconds: float) -> None:
        """Accept, send and receive for some time."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            for key, events in self._selector.select(left):
                sock = key.fileobj
                assert isinstance(sock, socket.socket)
                if key.data is not None:
                    self._accept(sock, key.data)
                    continue
                if events & selectors.EVENT_READ:
                    self.received += len(sock.recv(1 << 16))
                if events & selectors.EVENT_WRITE:
                    self._waiting[sock] = self._waiting[sock][sock.send(self._waiting[sock]) :]
                    if not self._waiting[sock]:
                        self._selector.modify(sock, selectors.EVENT_READ)

    def _accept(self, listener: socket.socket, peer: int) -> None:
        sock, _ = listener.accept()
        sock.setblocking(False)
        attributes = streams.attributes([FIRST_ASN + peer], address(peer))
        first = streams.FIRST_PREFIX + peer * self._prefixes
        table = streams.messages(attributes, streams.host_nlri(first, self._prefixes))
        self._waiting[sock] = open_message(FIRST_ASN + peer) + KEEPALIVE + table
        self._selector.register(sock, selectors.EVENT_READ | selectors.EVENT_WRITE)

    def wait(self) -> None:
        """Run until each session has the prefixes of all others."""
        deadline = time.monotonic() + START_SECONDS
        wanted = self._number * (self._number - 1) * self._prefixes * 5
        while self.received < wanted:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.received} of {wanted} octets have arrived")
            self.run(0.2)
        self.run(SETTLE_SECONDS)

    def leave(self) -> None:
        """Close all connections, and listen no more."""
        for key in list(self._selector.get_map().values()):
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            self._selector.unregister(sock)
            sock.close()


def address(peer: int) -> str:
    """Return the loopback address of a peer."""
    return f"127.78.{peer // 250}.{peer % 250 + 1}"


def memory(pid: int, field: str) -> float:
    """Return VmRSS or VmHWM of a process in MB (10^6 octets)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ValueError(field)


def measure(directory: Path, number: int, prefixes: int) -> tuple[float, float]:
    """Return the memory before, and the peak from then on."""
    peers = Peers(number, prefixes)
    config = {
        "asn": 65000,
        "routerID": "192.0.2.9",
        "neighbors": [
            {
                "address": address(peer),
                "asn": FIRST_ASN + peer,
                "port": peers.port,
                "import": "all",
                "export": "all",
                "connectRetryTime": 1,
            }
            for peer in range(number)
        ],
    }
    file = directory / "router.yaml"
    file.write_text(json.dumps(config))
    with (directory / "log").open("wb") as log:
        router = subprocess.Popen(
            [sys.executable, "-m", "waggle", "router", "-c", file], stdout=log, stderr=log
        )
    try:
        peers.wait()
        before = memory(router.pid, "VmRSS")
        # The peak is counted anew from here (proc(5)).
        Path(f"/proc/{router.pid}/clear_refs").write_text("5")
        peers.leave()
        time.sleep(LEAVE_SECONDS)
        return before, memory(router.pid, "VmHWM")
    finally:
        router.terminate()
        router.wait(20)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status is 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peers", type=int, default=100, metavar="N")
    parser.add_argument("--prefixes", type=int, default=1000, metavar="N", help="of each peer")
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        before, peak = measure(Path(name), args.peers, args.prefixes)
    print(
        f"{args.peers} peers with {args.prefixes} prefixes each leave at once: {before:.0f} MB, "
        f"{peak:.0f} MB at most: {peak / before:.2f} (goal {GOAL})"
    )
    return 0 if peak <= GOAL * before else 1


if __name__ == "__main__":
    sys.exit(main())
