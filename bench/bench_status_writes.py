"""Writes of a large cluster to its API server while Services change all the time.

Simulated agents, each with the writer of statuses of `waggle-agent` and a status whose number of routes
changes every second, in virtual time. Counted: the requests of each second.

``python -m bench.bench_status_writes [--agents N] [--seconds N]``
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
from typing import Any

from reconcilers.dialect import ObjectStatus
from reconcilers.model import ObjectRef
from reconcilers.report.status_writer import StatusWriter
from resources.cilium.kinds import NODE_CONFIG
from resources.cilium.status import InstanceStatus, NodeConfigStatus, PeerStatus, RouteCount
from resources.kind import Kinds

GOAL = 50
SETTLE_SECONDS = 300
"""Of the start, which is not measured."""


class Server:
    """An API server that counts."""

    def __init__(self) -> None:
        self.now = 0.0
        self.writes: dict[int, int] = {}

    async def get(self, path: str) -> dict[str, Any]:
        """Return an object without a status."""
        return {"metadata": {"name": path}}

    async def merge(self, path: str, content: dict[str, Any]) -> dict[str, Any]:
        """Count a write."""
        self.writes[int(self.now)] = self.writes.get(int(self.now), 0) + 1
        return {"metadata": {"name": path}, **content}


def status(name: str, routes: int) -> ObjectStatus:
    """Return the status of a node with one session."""
    counts = (RouteCount(afi="ipv4", safi="unicast", advertised=routes, received=1),)
    peer = PeerStatus(
        name="tor", peer_address="192.0.2.1", peering_state="established", route_count=counts
    )
    instance = InstanceStatus(name="i", local_asn=65001, peers=(peer,))
    return ObjectStatus(
        ObjectRef(NODE_CONFIG.name, "", name),
        name,
        NodeConfigStatus(bgp_instances=(instance,)),
        counts=frozenset({"routeCount"}),
    )


async def simulate(agents: int, seconds: int) -> list[int]:
    """Return the writes of each second after the start."""
    server = Server()
    rng = random.Random(1)  # noqa: S311  jitter
    kinds = Kinds((NODE_CONFIG,))
    writers = [
        StatusWriter(
            server, kinds, rng, enabled=True, report=lambda _: None, now=lambda: server.now,
            nodes=lambda: agents,
        )
        for _ in range(agents)
    ]  # fmt: skip
    due = [rng.random() * SETTLE_SECONDS / 2 for _ in writers]
    for second in range(SETTLE_SECONDS + seconds):
        server.now = float(second)
        for number, writer in enumerate(writers):
            if due[number] <= second:
                pause = await writer.step([status(f"node-{number}", second + 1)])
                due[number] = second + max(1.0, pause or 0.0)
    return [server.writes.get(second, 0) for second in range(SETTLE_SECONDS, second + 1)]


def main() -> int:
    """Simulate and print; the exit status is 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--agents", type=int, default=5000, metavar="N")
    parser.add_argument("--seconds", type=int, default=900, metavar="N")
    args = parser.parse_args()
    found = asyncio.run(simulate(args.agents, args.seconds))
    print(
        f"{args.agents} agents, numbers of routes change every second: "
        f"{statistics.mean(found):.1f} writes a second, at most {max(found)} (goal {GOAL}), "
        f"{statistics.mean(found) * 3600:,.0f} in an hour"
    )
    return 0 if max(found) <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
