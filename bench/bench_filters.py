"""Time to apply a changed list of accepted prefixes to received routes, without a route refresh.

The speaker's core without a kernel: one peer has sent 100,000 routes, and its import policy changes
between 200 prefixes and one more. Prints, for a narrow and for a wide prefix, the median CPU time of
the whole change and of its longest turn of the event loop, and the octets that are written to the peer:
none. ``--longest MS``: the same with 1,000,000 routes, and changes from and to no policy, and to
a policy that accepts nothing; fails if a turn is longer. ``WAGGLE_PURE=1``: with prefix tables in
Python.

``python -m bench.bench_filters [--rounds N] [--longest MS]``
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Final, Literal

from bench.speed import streams
from speaker.api import InstanceConfig, PeerConfig, PrefixRule
from speaker.capability import FourOctetAs, Multiprotocol
from speaker.engine import Engine
from speaker.engine.inputs import (
    BytesReceived,
    Input,
    SendUpdates,
    SetInstance,
    SetPeer,
    TransportAccepted,
)
from speaker.message import KEEPALIVE, Open
from speaker.nlri import IPV4_UNICAST
from speaker.peer.actions import Write
from speaker.rib.prefix_table import FORM

RECEIVED: Final = 100_000
PER_UPDATE: Final = 800
ATTRIBUTE_SETS: Final = 50
PEER, ASN = "10.0.1.1", 65001
ACCEPTED: Final = tuple(PrefixRule(f"10.{n}.0.0/16", le=24) for n in range(200))
MANY: Final = 1_000_000
NOTHING: Final = "none"
Rules = Sequence[PrefixRule] | Literal["all", "none"]
CHANGES: Final[tuple[tuple[str, Rules], ...]] = (
    ("no policy to 200 prefixes", ACCEPTED),
    ("200 prefixes to everything", (*ACCEPTED, PrefixRule("0.0.0.0/0", le=32))),
    ("everything to no policy", "all"),
    ("no policy to nothing", NOTHING),
    ("nothing to everything", (*ACCEPTED, PrefixRule("0.0.0.0/0", le=32))),
    ("everything to nothing", NOTHING),
    ("nothing to no policy", "all"),
)
ADDED: Final = {
    "a /16 with its /24s": PrefixRule("11.7.0.0/16", le=24),
    "everything": PrefixRule("0.0.0.0/0", le=32),
}


class Bench:
    """An engine with one Established session, and the routes that its peer has sent."""

    def __init__(self, received: int, rules: Rules) -> None:
        self._engine = Engine(random.Random(1))  # noqa: S311  jitter
        self.written = 0
        self._turn(SetInstance(InstanceConfig(name="bench", local_asn=65000, router_id="10.0.0.1")))
        self.configure(rules)
        self._turn(TransportAccepted(1, "bench", ("10.0.0.1", 179), (PEER, 4000)))
        capabilities = (Multiprotocol(IPV4_UNICAST), FourOctetAs(ASN))
        greeting = Open(asn=ASN, hold_time=90, router_id=1, capabilities=capabilities)
        self._turn(BytesReceived(1, greeting.encode()))
        self._turn(BytesReceived(1, KEEPALIVE))
        first = 0 if received > RECEIVED else 10 << 16
        wires = [b"\x18" + (first + n).to_bytes(3, "big") for n in range(received)]
        for number, start in enumerate(range(0, received, PER_UPDATE)):
            path = [ASN, 64512 + number % ATTRIBUTE_SETS]
            some = b"".join(wires[start : start + PER_UPDATE])
            message = streams.update(b"", streams.attributes(path, PEER), some)
            self._turn(BytesReceived(1, message))
        while self._engine.updates_pending:
            self._turn(SendUpdates())
        self.written = 0

    def configure(self, rules: Rules) -> list[float]:
        """Change the import policy; returns the times of the turns in milliseconds."""
        policy = rules if isinstance(rules, str) else tuple(rules)
        peer = PeerConfig(name=PEER, address=PEER, peer_asn=ASN, passive=True, import_=policy)
        turns = [self._turn(SetPeer("bench", peer))]
        while self._engine.updates_pending:
            turns.append(self._turn(SendUpdates()))
        return turns

    def accepted(self) -> int:
        """Return the number of routes that are used."""
        (status,) = self._engine.views.peers(0.0)
        return status.families[0].accepted

    def _turn(self, item: Input) -> float:
        began = time.process_time_ns()
        actions = self._engine.handle(item, 0.0)
        took = (time.process_time_ns() - began) / 1e6
        self.written += sum(
            sum(map(len, action.parts)) for action in actions if type(action) is Write
        )
        return took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="bench.bench_filters", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=10, metavar="N")
    parser.add_argument(
        "--longest", type=float, metavar="MS", help="1,000,000 routes; fails beyond it"
    )
    arguments = parser.parse_args()
    if arguments.longest is None:
        _measure_rules(arguments.rounds)
    else:
        _measure_turns(arguments.longest)


def _measure_turns(limit: float) -> None:
    bench = Bench(MANY, "all")
    over = []
    for name, rules in CHANGES:
        turns = bench.configure(rules)
        longest = sorted(turns)[-3:]
        print(
            f"{MANY:,} received, tables in {FORM}, from {name}: {sum(turns) / 1000:.2f} s in"
            f" {len(turns):,} turns, longest {', '.join(f'{turn:.1f}' for turn in longest)} ms"
        )
        if longest[-1] > limit:
            over.append(name)
    if over:
        sys.exit(f"a turn is longer than {limit:g} ms: {', '.join(over)}")


def _measure_rules(rounds: int) -> None:
    bench = Bench(RECEIVED, ACCEPTED)
    took: dict[str, list[list[float]]] = {name: [] for name in ADDED}
    for _ in range(rounds):
        for name, rule in ADDED.items():
            before = bench.accepted()
            took[name].append(bench.configure((*ACCEPTED, rule)))
            if bench.accepted() <= before:
                raise RuntimeError(f"{name}: no route was accepted")
            bench.configure(ACCEPTED)
    for name, changes in took.items():
        whole = statistics.median(sum(turns) for turns in changes)
        longest = statistics.median(max(turns) for turns in changes)
        print(
            f"{RECEIVED:,} received, {name} added: {whole:.1f} ms, longest turn {longest:.1f} ms,"
            f" {bench.written} octets sent to the peer"
        )


if __name__ == "__main__":
    main()
