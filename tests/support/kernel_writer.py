"""The program ``waggle-kernel`` in a network namespace, and an agent's end of its socket.

What it does is read with ``ip``, never with our own code.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from reconcilers.kernel.options import MAIN_TABLE
from reconcilers.kernel.writer.protocol import CODEC, Message
from reconcilers.kernel.writer.protocol_messages import (
    IPV4,
    IPV6,
    Batch,
    Confirmed,
    Hello,
    Listing,
    NextHop,
    NextHopSet,
    Routes,
    RouteTable,
    SetRoutes,
    Settings,
)
from tests.support.netns import Namespace
from tests.support.socket_program import SocketProgram

MAIN = RouteTable(MAIN_TABLE, IPV4, 20)
MAIN6 = RouteTable(MAIN_TABLE, IPV6, 20)
PROTOCOL = 186


def wire(*prefixes: str) -> bytes:
    """Return prefixes in wire form, concatenated."""
    octets = b""
    for text in prefixes:
        network = ipaddress.ip_network(text)
        used = (network.prefixlen + 7) // 8
        octets += bytes((network.prefixlen,)) + network.network_address.packed[:used]
    return octets


def hop(gateway: str = "", interface: int = 0, weight: int = 1, *, onlink: bool = False) -> NextHop:
    """Return a next hop; the gateway is text."""
    packed = ipaddress.ip_address(gateway).packed if gateway else b""
    return NextHop(packed, interface, onlink, weight)


def index(side: Namespace, device: str) -> int:
    """Return the index of an interface."""
    (found,) = json.loads(side.run("ip", "-j", "link", "show", device))
    number: int = found["ifindex"]
    return number


def routes(side: Namespace, family: int = 4, table: int = MAIN_TABLE) -> dict[str, Any]:
    """Return the routes with our protocol number, by prefix, as ``ip`` shows them."""
    shown = side.run(
        "ip", f"-{family}", "-j", "route", "show", "table", str(table), "proto", str(PROTOCOL)
    )
    return {route["dst"]: route for route in json.loads(shown or "[]")}


def gateways(route: dict[str, Any]) -> set[tuple[str, str, int]]:
    """Return gateway, interface and weight of each next hop of a route that ``ip`` shows."""
    hops = route.get("nexthops", [route])
    return {
        (h.get("gateway", h.get("via", {}).get("host", "")), h.get("dev", ""), h.get("weight", 1))
        for h in hops
    }


class WriterProcess(SocketProgram[Message]):
    """A writer, and the agent's end of a connection to it."""

    def __init__(
        self, side: Namespace, path: Path, *flags: str, within: Sequence[str] = ()
    ) -> None:
        """``within``: a command that starts the program, with other rights."""
        program = [sys.executable, "-m", "waggle_kernel", "--socket", str(path), *flags]
        self._batch = 0
        super().__init__([*side.command(), *within, *program], path, CODEC, Hello("test"))

    def connect(self, settings: Settings | None = None) -> list[SetRoutes]:
        """Connect as a new agent, and return the routes that the writer lists."""
        self.greet()
        self.send(settings or Settings())
        return self.listing()

    def listing(self) -> list[SetRoutes]:
        """Wait for the next listing."""
        found: list[SetRoutes] = []
        while True:
            piece = self.expect(Listing)
            found += piece.routes
            if piece.last:
                return found

    def batch(self, **parts: Any) -> Confirmed:  # noqa: ANN401  fields of a batch
        """Send a batch and wait until it is confirmed."""
        self._batch += 1
        number = self._batch
        self.send(Batch(number, **parts))
        return self.expect(Confirmed, lambda c: c.number == number)

    def install(
        self, next_hops: NextHopSet, *prefixes: str, table: RouteTable | None = None
    ) -> Confirmed:
        """Install prefixes, in the main table by default."""
        if table is None:
            table = MAIN6 if ":" in prefixes[0] else MAIN
        return self.batch(routes=(SetRoutes(next_hops, (Routes(table, wire(*prefixes)),)),))

    def remove(self, *prefixes: str, table: RouteTable | None = None) -> Confirmed:
        """Remove prefixes."""
        if table is None:
            table = MAIN6 if ":" in prefixes[0] else MAIN
        return self.batch(removed=(Routes(table, wire(*prefixes)),))


@contextlib.contextmanager
def writer_in(side: Namespace, *flags: str, within: Sequence[str] = ()) -> Iterator[WriterProcess]:
    """Run a writer in a namespace, connected."""
    with tempfile.TemporaryDirectory(prefix="waggle-kernel-") as folder:
        process = WriterProcess(side, Path(folder) / "kernel.sock", *flags, within=within)
        try:
            process.connect()
            yield process
        finally:
            process.end()
