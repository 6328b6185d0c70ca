"""The core's turns while a reader follows the best paths of a large table.

One peer announces a table like that of the Internet and leaves; a reader takes what it is sent once per
turn, or there is none. Measured is the CPU time of a turn (an input of 32 KiB, and what is sent with
it); the growth of the Loc-RIB's dictionary is apart, as it is the same without a reader.

With ``--beside`` only the table without a reader is measured, in turns with another checkout, as one
without such streams; both have prefix tables in Python. Printed are the medians of the CPU seconds, of
the other checkout and of this one, and their ratio.

``python -m bench.bench_best_paths [--prefixes N] [--multipath N] [--beside CHECKOUT]``; exit status 1
if a goal is missed
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.speed import streams
from speaker.api import BestPathChange, InstanceConfig, Multipath, PathSet, PeerConfig
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
    UnfollowBestPaths,
)
from speaker.message import KEEPALIVE, Open
from speaker.nlri import IPV4_UNICAST
from speaker.peer.actions import SendBestPaths
from speaker.server.free_memory import bound_collections

GOAL_SECONDS: Final = 0.020
"""The longest turn, without the growth of dictionaries."""
PIECE: Final = 32 * 1024
PEER: Final = "10.0.1.1"
ASN: Final = 65001
SETS_PER_PREFIX: Final = 0.2
GOAL_RATIO: Final = 1.05
"""The CPU time without a reader, beside a checkout without the stream."""
ROUNDS: Final = 9
ROOT: Final = Path(__file__).resolve().parent.parent


class Router:
    """An engine with one peer and at most one reader."""

    def __init__(self, multipath: int = 1) -> None:
        self._engine = Engine(random.Random(1))  # noqa: S311  jitter
        self._multipath = Multipath(multipath)
        self._sent: list[SendBestPaths] = []
        self.routes: dict[bytes, PathSet] = {}
        """What the reader has."""
        self.give(SetInstance(InstanceConfig(name="i", local_asn=65000, router_id="10.0.0.1")))

    def connect(self) -> None:
        """Establish the session."""
        peer = PeerConfig(name="p", address=PEER, peer_asn=ASN, passive=True, import_="all")
        self.give(SetPeer("i", peer))
        self.give(TransportAccepted(1, "i", ("10.0.0.1", 179), (PEER, 4000)))
        capabilities = (Multiprotocol(IPV4_UNICAST), FourOctetAs(ASN))
        greeting = Open(asn=ASN, hold_time=90, router_id=1, capabilities=capabilities)
        self.give(BytesReceived(1, greeting.encode()))
        self.give(BytesReceived(1, KEEPALIVE))

    def give(self, item: Input) -> float:
        """Handle an input; returns its CPU time in seconds."""
        began = time.thread_time()
        actions = self._engine.handle(item, 0.0)
        took = time.thread_time() - began
        self._sent += (action for action in actions if isinstance(action, SendBestPaths))
        return took

    def follow(self) -> None:
        """Open the reader's stream."""
        self.give(FollowBestPaths(1, "i", self._multipath))

    def unfollow(self) -> None:
        """Close it, and forget what it has."""
        self.give(UnfollowBestPaths(1))
        self.routes.clear()

    def settle(self) -> Iterator[float]:
        """Send what is pending; yields the CPU time of each turn."""
        while self._engine.updates_pending:
            yield self.give(SendUpdates())
            self._take()

    def _take(self) -> None:
        sent, self._sent = self._sent, []
        for action in sent:
            for item in action.items:
                if isinstance(item, BestPathChange):
                    if item.after:
                        self.routes.update(dict.fromkeys(item.prefixes, item.after))
                    else:
                        for nlri in item.prefixes:
                            del self.routes[nlri]
        if sent:
            self.give(BestPathsTaken(1, len(sent)))

    def load(self, table: bytes) -> tuple[list[float], list[float]]:
        """Receive a table; returns the times of its inputs, and of what was sent behind each."""
        received: list[float] = []
        sent: list[float] = []
        for at in range(0, len(table), PIECE):
            received.append(self.give(BytesReceived(1, table[at : at + PIECE])))
            sent += self.settle()
        return received, sent

    def leave(self) -> list[float]:
        """Lose the session; returns the time of each turn until its routes are gone."""
        return [self.give(TransportClosed(1, "gone")), *self.settle()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="bench.bench_best_paths", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--prefixes", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--multipath", type=int, default=1, metavar="N", help="paths of a set")
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="without a reader alone")
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "table"
        sets = int(args.prefixes * SETS_PER_PREFIX)
        table = streams.table(path, ASN, PEER, args.prefixes, sets).read_bytes()
        if args.beside is not None:
            return _beside(args.beside.resolve(), path)
    longest = 0.0
    for reader in ("none", "from the beginning", "of the whole table"):
        router = Router(args.multipath)
        router.connect()
        if reader == "from the beginning":
            router.follow()
        received, sent = router.load(table)
        print(f"reader: {reader}")
        print(f"  table received: {sum(received):.2f} s, longest input {_ms(received)}")
        print(f"  sent meanwhile: {sum(sent):.2f} s, longest turn {_ms(sent)}")
        if reader == "of the whole table":
            router.follow()
            sent = list(router.settle())
            print(f"  table sent:     {sum(sent):.2f} s, longest turn {_ms(sent)}")
        left = router.leave()
        print(f"  peer gone:      {sum(left):.2f} s, longest turn {_ms(left)}")
        longest = max(longest, *sent, *left)
    print(f"longest turn {longest * 1e3:.1f} ms (goal: {GOAL_SECONDS * 1e3:.0f} ms)")
    return 1 if longest > GOAL_SECONDS else 0


def _beside(checkout: Path, table: Path) -> int:
    """Measure the table without a reader, in turns with another checkout."""
    sides = {"other": checkout, "this": ROOT}
    seconds: dict[str, list[list[float]]] = {side: [] for side in sides}
    for turn in range(ROUNDS):
        for side in sorted(sides, reverse=bool(turn % 2)):
            command = [sys.executable, str(ROOT / "bench/without_reader.py"), str(table)]
            environment = {**os.environ, "PYTHONPATH": str(sides[side]), "WAGGLE_PURE": "1"}
            done = subprocess.run(
                command,
                env=environment,
                cwd=sides[side],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            seconds[side].append([float(word) for word in done.stdout.split()])
    missed = False
    for at, step in enumerate(("table received", "peer gone")):
        other, this = (statistics.median(r[at] for r in seconds[side]) for side in sides)
        missed |= this > GOAL_RATIO * other
        print(f"{step}: {other:.3f} s, {this:.3f} s, ratio {this / other:.3f} (goal {GOAL_RATIO})")
    return int(missed)


def _ms(times: list[float]) -> str:
    return f"{max(times) * 1e3:.1f} ms"


if __name__ == "__main__":
    bound_collections()
    sys.exit(main())
