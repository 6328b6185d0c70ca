"""Turns of an agent whose two peers announce one large table, with ECMP in the kernel.

The core, and the reconciler of kernel routes behind it, with a writer in memory. One peer announces a
table like that of the Internet, then the other one the same prefixes; then the first session is lost
and comes back, an interface changes, and the session is lost with its routes. Measured is the CPU time
of each turn: an input of 32 KiB, what is sent with it, a batch of best paths, a slice of a round. The
goal is for the longest one: what other sessions wait. Then the same with tables as of a route server,
whose routes all have different sets of next hops.

``python -m bench.bench_kernel_turns [--prefixes N] [--sets N] [--different N]``; exit status 1 if the
goal is missed
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

from bench.speed import streams
from reconcilers.kernel.writer.protocol_messages import TrackedAddress
from speaker.api import InstanceConfig, Multipath, PeerConfig
from speaker.capability import FourOctetAs, Multiprotocol
from speaker.engine import Engine
from speaker.engine.inputs import (
    BestPathsTaken,
    BytesReceived,
    FollowBestPaths,
    Input,
    SendUpdates,
    SetInstance,
    SetPeer,
    TransportAccepted,
    TransportClosed,
)
from speaker.message import KEEPALIVE, Open
from speaker.nlri import IPV4_UNICAST
from speaker.peer.actions import SendBestPaths
from speaker.server.free_memory import bound_collections
from tests.reconcilers.kernel.build import octets
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import NETWORKS, NUMBERED, Agent

GOAL_SECONDS: Final = 0.020
PIECE: Final = 32 * 1024
PEERS: Final = ("10.88.0.1", "10.88.0.2")
ASN: Final = 65001
GATEWAYS: Final = tuple(
    tuple(f"10.88.{part}.{n}" for n in range(12, 162)) for part in range(len(PEERS))
)
"""Next hops by which each peer announces its table as of a route server: 22,500 different pairs."""
T = TypeVar("T")


class Bench:
    """An engine with its reader of best paths."""

    def __init__(self) -> None:
        self._engine = Engine(random.Random(1))  # noqa: S311  jitter
        self._agent = Agent().start()
        for gateway in (*GATEWAYS[0], *GATEWAYS[1]):
            address = TrackedAddress(254, octets(gateway))
            self._agent.writer.own_routes[address] = NETWORKS[254]
        self._longest: tuple[float, str] = (0.0, "")
        self.give(SetInstance(InstanceConfig(name="main", local_asn=65000, router_id="10.0.0.1")))
        self.give(FollowBestPaths(1, "main", Multipath(64)))
        self.settle()

    @property
    def kernel(self) -> Agent:
        """The reconciler."""
        return self._agent

    def turn(self, what: str, work: Callable[[], T]) -> T:
        """Measure one turn."""
        began = time.thread_time()
        result = work()
        self._longest = max(self._longest, (time.thread_time() - began, what))
        return result

    def give(self, item: Input) -> list[SendBestPaths]:
        """Have the core handle an input."""
        actions = self.turn(type(item).__name__, lambda: self._engine.handle(item, 0.0))
        return [action for action in actions if isinstance(action, SendBestPaths)]

    def connect(self, number: int, address: str) -> None:
        """Establish a session."""
        peer = PeerConfig(name=address, address=address, peer_asn=ASN, passive=True, import_="all")
        capabilities = (Multiprotocol(IPV4_UNICAST), FourOctetAs(ASN))
        greeting = Open(asn=ASN, hold_time=90, router_id=number, capabilities=capabilities)
        self.give(SetPeer("main", peer))
        self.give(TransportAccepted(number, "main", ("10.88.0.11", 179), (address, 4000)))
        self.give(BytesReceived(number, greeting.encode()))
        self.give(BytesReceived(number, KEEPALIVE))

    def load(self, number: int, table: bytes) -> None:
        """Receive a table."""
        for at in range(0, len(table), PIECE):
            self.give(BytesReceived(number, table[at : at + PIECE]))
            self.settle()
        self.reconcile()

    def settle(self) -> None:
        """Send what is pending, and reconcile it."""
        while self._engine.updates_pending:
            for action in self.give(SendUpdates()):
                items = action.items
                self.turn("best paths", lambda: self._agent.kernel.best_paths("main", items))  # noqa: B023
                self.give(BestPathsTaken(1, 1))
            self._round()

    def reconcile(self) -> None:
        """Run rounds until nothing is left to do."""
        tables, installed = self._agent.kernel.wanted_tables, self._agent.kernel.installed
        self._round()
        while tables.has_changed or self._agent.writer.sent or installed.pending:
            self._round()

    def _round(self) -> None:
        slices: Iterator[None] = self._agent.runner.slices(lambda: 0.0)
        while self.turn("slice of a round", lambda: next(slices, self)) is not self:
            pass
        self._agent.writer.run()

    def report(self, step: str) -> float:
        """Print the longest turn since the last report; returns its seconds."""
        (seconds, what), self._longest = self._longest, (0.0, "")
        print(f"{step:24} longest turn {seconds * 1e3:5.1f} ms ({what})", flush=True)
        return seconds


def internet(number: int, prefixes: int, sets: int) -> bytes:
    """Return a peer's table like that of the Internet."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "table"
        return streams.table(path, ASN, PEERS[number], prefixes, sets).read_bytes()


def route_server(number: int, prefixes: int) -> bytes:
    """Return a peer's table of prefixes that have, by both peers, different sets of next hops."""
    gateways = GATEWAYS[number]
    parts = []
    for n in range(prefixes):
        row = n // len(gateways) if number else n
        wire = streams.attributes([ASN, 100_000 + n], gateways[row % len(gateways)])
        parts.append(streams.messages(wire, [bytes((24, 20 + (n >> 16), n >> 8 & 255, n & 255))]))
    return b"".join(parts)


def run(name: str, tables: Sequence[bytes]) -> list[float]:
    """Measure the turns of one pair of tables; returns the seconds of the longest ones."""
    bench = Bench()
    seconds: list[float] = []
    for number, (address, table) in enumerate(zip(PEERS, tables, strict=True), start=1):
        bench.connect(number, address)
        bench.load(number, table)
        seconds.append(bench.report(f"{name} {number}"))
    kernel = bench.kernel.kernel
    several = [hops for hops in bench.kernel.routes.values() if len(hops) == len(PEERS)]
    print(f"{len(several)} routes have both next hops, {len(set(several))} different sets")
    steps: dict[str, Callable[[], object]] = {
        "session lost": lambda: kernel.session_lost("main", PEERS[0]),
        "session restored": lambda: kernel.session_restored("main", PEERS[0]),
        "host changed": lambda: kernel.host_changed(NUMBERED),
        "lost with its routes": lambda: kernel.session_lost("main", PEERS[0]),
    }
    for step, work in steps.items():
        bench.turn(step, work)
        bench.reconcile()
        if work is steps["lost with its routes"]:
            bench.give(TransportClosed(1, "gone"))
            bench.settle()
            bench.reconcile()
        seconds.append(bench.report(step))
    print(f"{len(bench.kernel.routes)} routes are left")
    return seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; returns 1 if the goal is missed."""
    parser = argparse.ArgumentParser(
        prog="bench.bench_kernel_turns", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--prefixes", type=int, default=100_000, metavar="N")
    parser.add_argument("--sets", type=int, default=20_000, metavar="N", help="attribute sets")
    parser.add_argument(
        "--different", type=int, default=20_000, metavar="N", help="different sets of next hops"
    )
    args = parser.parse_args(arguments)
    numbers = range(len(PEERS))
    seconds = run("table", [internet(n, args.prefixes, args.sets) for n in numbers])
    seconds += run("route server", [route_server(n, args.different) for n in numbers])
    print(f"longest turn {max(seconds) * 1e3:.1f} ms (goal: {GOAL_SECONDS * 1e3:.0f} ms)")
    return int(max(seconds) > GOAL_SECONDS)


if __name__ == "__main__":
    bound_collections()
    sys.exit(main())
