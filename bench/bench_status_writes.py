"""Writes of a large cluster to its API server while Services change all the time.

Simulated agents, each with the reconciler of statuses of `waggle-agent` and a status whose number of
routes changes every second, in virtual time. Counted: the requests of each second, in a window of the
longest wait of a number and after a start of the same length: each agent writes within both.

``python -m bench.bench_status_writes [--agents N] [--seconds N]``
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
from typing import Any

from cells.hive.rounds import in_slices
from reconcilers.dialect import ObjectStatus
from reconcilers.model import ObjectRef
from reconcilers.report.statuses import WRITE_INTERVAL_SECONDS, Statuses
from reconcilers.target import ReconcileOutcome, Runner
from reconcilers.target.write_spread import WriteSpread, count_interval
from resources.cilium.kinds import NODE_CONFIG
from resources.cilium.status import InstanceStatus, NodeConfigStatus, PeerStatus, RouteCount
from resources.kind import Kinds
from statedb import Database, Index, Table

GOAL = 50
SETTLE_SECONDS = 300
"""Of the start, which is not measured."""


class Server:
    """An API server with counters of its requests."""

    def __init__(self) -> None:
        self.now = 0.0
        self.writes: dict[int, int] = {}
        self._statuses: dict[str, Any] = {}

    async def get(self, path: str) -> dict[str, Any]:
        """Return an object with the status that was written last."""
        return {"metadata": {"name": path}, "status": self._statuses.get(f"{path}/status")}

    async def merge(self, path: str, content: dict[str, Any]) -> dict[str, Any]:
        """Count a write."""
        self._statuses[path] = content["status"]
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


class Agent:
    """One agent: its table of statuses, and the runner that writes them."""

    def __init__(self, server: Server, spread: WriteSpread, rng: random.Random) -> None:
        self._server = server
        self._db = Database()
        self._table: Table[ObjectStatus] = self._db.table(
            "object-statuses", Index("key", lambda row: str(row.object))
        )
        kinds = Kinds((NODE_CONFIG,))
        statuses = Statuses(
            self._db, self._table, server, kinds, spread, enabled=True, now=self._now
        )
        self._outcomes: list[ReconcileOutcome] = []
        self._runner = Runner(self._db, None, [statuses], rng, report=self._outcomes.append)

    def _now(self) -> float:
        return self._server.now

    async def step(self, row: ObjectStatus) -> float:
        """Do a round with this status; the seconds until one in which anything may be written."""
        self._outcomes.clear()
        with self._db.write(self._table) as txn:
            self._table.upsert(txn, row)
        summary = await in_slices(self._runner.slices(self._now))
        if self._outcomes:
            # Another second, another number: it is noticed when the status may be written again.
            return WRITE_INTERVAL_SECONDS
        return (summary.retry_at or 0.0) - self._now()


async def simulate(agents: int, seconds: int) -> list[int]:
    """Return the writes of each second after the start."""
    server = Server()
    rng = random.Random(1)  # noqa: S311  jitter
    spread = WriteSpread(rng.random, lambda: agents)
    running = [Agent(server, spread, rng) for _ in range(agents)]
    due = [rng.random() * SETTLE_SECONDS / 2 for _ in running]
    settled = SETTLE_SECONDS + int(count_interval(agents))
    for second in range(settled + seconds):
        server.now = float(second)
        for number, agent in enumerate(running):
            if due[number] <= second:
                pause = await agent.step(status(f"node-{number}", second + 1))
                due[number] = second + max(1.0, pause)
    return [server.writes.get(second, 0) for second in range(settled, settled + seconds)]


def main() -> int:
    """Simulate and print; the exit status is 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--agents", type=int, default=5000, metavar="N")
    parser.add_argument("--seconds", type=int, metavar="N", help="default: the longest wait")
    args = parser.parse_args()
    rates = asyncio.run(simulate(args.agents, args.seconds or int(count_interval(args.agents))))
    print(
        f"{args.agents} agents, numbers of routes change every second: "
        f"{statistics.mean(rates):.1f} writes a second, at most {max(rates)} (goal {GOAL}), "
        f"{statistics.mean(rates) * 3600:,.0f} in an hour"
    )
    return 0 if max(rates) <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
