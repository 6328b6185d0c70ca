"""Turns of the event loop that a scrape of the metrics takes: what a keepalive would wait.

A router with many established sessions, of which one has sent many routes. The goal is for the
processor time of the longest turn, which other load of the machine does not change.

``python -m bench.bench_scrape [--peers N] [--routes N]``
"""

from __future__ import annotations

import argparse
import gc
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from types import SimpleNamespace
from typing import cast

from cells.observability.exposition import exposition
from cells.speaker.events import SpeakerEvents
from cells.speaker.metrics import SpeakerMetrics
from speaker.api import PeerConfig, PeerStatus, RouteAttributes, SpeakerPort
from speaker.engine.inputs import UpdateRoutes
from speaker.nlri import IPV4_UNICAST
from speaker.server.speaker import PEERS_PER_SLICE
from tests.speaker.network import INSTANCE, Host, Network

GOAL_MS = 20.0
SCRAPES = 5


class Hub:
    """The router; its sessions are read as by an agent."""

    def __init__(self, host: Host, network: Network) -> None:
        self._host = host
        self._network = network

    def peer_slices(self) -> Iterator[Sequence[PeerStatus]]:
        """Iterate over the sessions in slices."""
        statuses = self._host.engine.views.peers(self._network.now)
        while part := list(islice(statuses, PEERS_PER_SLICE)):
            yield part

    def instances(self) -> list[object]:
        """Return no instances: there is one."""
        return []


def hub_with(peers: int, routes: int) -> Hub:
    """Return a router with sessions, the first of which has sent the routes."""
    network = Network()
    host = network.host("hub", "10.0.0.1", 65000)
    first: Host | None = None
    for number in range(peers):
        address = f"10.{1 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"
        config = {"address": address, "peer_asn": 65001, "passive": True}
        host.peer(PeerConfig(name=f"p{number}", import_="all", export="none", **config))  # type: ignore[arg-type]
        leaf = network.host(f"leaf{number}", address, 65001)
        leaf.peer(PeerConfig(name="hub", address="10.0.0.1", peer_asn=65000, export="all"))
        first = first or leaf
    network.run(5)
    table = {
        bytes((24,)) + number.to_bytes(3, "big"): RouteAttributes()
        for number in range(20 << 16, (20 << 16) + routes)
    }
    if first is not None:
        first.give(UpdateRoutes(INSTANCE, None, {IPV4_UNICAST: table}))
    network.run(5)
    return Hub(host, network)


def turns_of(hub: Hub) -> tuple[list[float], int]:
    """Return the milliseconds of each turn of a scrape, and the octets of its text."""
    events = SimpleNamespace(transitions=Counter(), notifications=Counter())
    metrics = SpeakerMetrics(cast("SpeakerPort", hub), cast("SpeakerEvents", events))
    slices = exposition(metrics.collect())
    turns: list[float] = []
    while True:
        began = time.thread_time()
        try:
            next(slices)
        except StopIteration as end:
            turns.append(1000 * (time.thread_time() - began))
            return turns, len(end.value)
        turns.append(1000 * (time.thread_time() - began))


def main() -> int:
    """Measure; returns 1 if a turn takes longer than the goal."""
    parser = argparse.ArgumentParser(prog="python -m bench.bench_scrape", description=__doc__)
    parser.add_argument("--peers", type=int, default=1000)
    parser.add_argument("--routes", type=int, default=1_000_000)
    args = parser.parse_args()
    hub = hub_with(args.peers, args.routes)
    # As an agent does after its first pass (docs/operations.md, Memory).
    gc.collect()
    gc.freeze()
    longest = 0.0
    for _ in range(SCRAPES):
        turns, octets = turns_of(hub)
        longest = max(longest, *turns)
        print(
            f"{args.peers} peers, {args.routes} routes: {len(turns)} turns, the longest "
            f"{max(turns):.1f} ms, {sum(turns):.0f} ms in all, {octets} octets"
        )
    return int(longest > GOAL_MS)


if __name__ == "__main__":
    raise SystemExit(main())
