"""A peer over IPv4 that takes all routes, and prints when one of them is announced and withdrawn.

A line is the time, by the monotonic clock, and whether the route is there: ``12.5 1``; or the number of
prefixes that were announced until then, of messages with several: ``# 12000``.

``python -m bench.fib.listener ADDRESS PORT AS PREFIX``
"""

from __future__ import annotations

import contextlib
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Final

from speaker.capability import FourOctetAs, Multiprotocol
from speaker.message import HEADER_SIZE, KEEPALIVE, Open
from speaker.nlri import IPV4_UNICAST, decode_prefixes, prefix_to_wire
from tests.support.netns import Namespace

_UPDATE: Final = 2
LIMIT_SECONDS: Final = 120.0


class Listener:
    """The program, and what it has printed."""

    def __init__(
        self, namespace: Namespace, address: str, port: int, asn: int, prefix: str
    ) -> None:
        arguments = (address, str(port), str(asn), prefix)
        command = [*namespace.command(), sys.executable, "-m", "bench.fib.listener", *arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._changes: queue.SimpleQueue[tuple[float, bool]] = queue.SimpleQueue()
        self.count = 0
        """Prefixes that were announced, of messages with several."""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            first, second = line.split()
            if first == "#":
                self.count = int(second)
            else:
                self._changes.put((float(first), second == "1"))

    def until(self, *, there: bool, after: float) -> float:
        """Return the time at which the route was announced, or withdrawn, after a time."""
        while True:
            at, is_there = self._changes.get(timeout=LIMIT_SECONDS)
            if is_there is there and at > after:
                return at

    def close(self) -> None:
        """End the program."""
        self._process.kill()
        self._process.wait()
        self._thread.join()


def _messages(connection: socket.socket) -> Iterator[tuple[int, bytes]]:
    """Yield type and body of each message, until the end of the session."""
    octets = b""
    while received := connection.recv(1 << 16):
        octets += received
        at = 0
        while at + HEADER_SIZE <= len(octets):
            end = at + int.from_bytes(octets[at + 16 : at + 18], "big")
            if end > len(octets):
                break
            yield octets[at + 18], octets[at + HEADER_SIZE : end]
            at = end
        octets = octets[at:]


def _listen(connection: socket.socket, asn: int, router_id: str, prefix: bytes) -> None:
    """Speak BGP as far as it takes."""
    capabilities = (Multiprotocol(IPV4_UNICAST), FourOctetAs(asn))
    identifier = int.from_bytes(socket.inet_aton(router_id), "big")
    message = Open(asn=asn, hold_time=0, router_id=identifier, capabilities=capabilities)
    connection.sendall(message.encode() + KEEPALIVE)
    count = 0
    for kind, body in _messages(connection):
        if kind != _UPDATE:
            continue
        first = 2 + int.from_bytes(body[:2], "big")
        second = first + 2 + int.from_bytes(body[first : first + 2], "big")
        if prefix in body:
            for there, octets in ((0, body[2:first]), (1, body[second:])):
                if prefix in decode_prefixes(octets, IPV4_UNICAST.afi):
                    print(time.monotonic(), there, flush=True)
        # All prefixes of the bench are of one length: a table is not decoded, which takes longer than
        # the router needs for it.
        announced = (len(body) - second) // len(prefix)
        if announced > 1:
            count += announced
            print("#", count, flush=True)


def main() -> None:
    """Take one session after the other."""
    address, port, asn, text = sys.argv[1:]
    _, prefix = prefix_to_wire(text)
    with socket.create_server((address, int(port))) as server:
        while True:
            connection, _ = server.accept()
            with connection, contextlib.suppress(ConnectionError):
                _listen(connection, int(asn), address, prefix)


if __name__ == "__main__":
    main()
