"""The reconciler of kernel routes with its runner and a writer in memory."""

from __future__ import annotations

import msgspec

from reconcilers.intent_tables import IntentTables
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.reconciler import KernelReconciler
from reconcilers.kernel.writer.protocol_messages import (
    IPV4,
    KernelRoute,
    NextHop,
    NextHopSet,
    RouteTable,
    TrackedAddress,
)
from reconcilers.model import Instance
from reconcilers.target import Runner
from resources.host import Host
from speaker.api import (
    NO_PATHS,
    BestPathChange,
    BestPathItem,
    PathSet,
    SelectionEnd,
    TableBegin,
    TableEnd,
)
from speaker.nlri import IPV4_UNICAST, prefix_to_wire
from statedb import Database
from tests.reconcilers.kernel.build import ETH0, ETH1, HOST, octets, path, paths
from tests.reconcilers.kernel.memory_writer import MemoryWriter

MAIN = RouteTable(254, IPV4, 20)


RED = RouteTable(1044, IPV4, 20)


KEY = ("254", "ipv4-unicast", "20")


NUMBERED = Host(
    (
        msgspec.structs.replace(ETH0, index=2),
        msgspec.structs.replace(ETH1, index=3),
        msgspec.structs.replace(HOST.devices[2], index=4),
    ),
    HOST.default_routes,
    HOST.vrfs,
)


ONE, TWO = paths(path("10.88.0.1")), paths(path("10.88.0.2"))


BOTH = paths(path("10.88.0.1"), path("10.88.0.2"))


def hops(*gateways: str, interface: int = 2) -> NextHopSet:
    return tuple(NextHop(octets(gateway), interface) for gateway in gateways)


def wire(text: str) -> bytes:
    return prefix_to_wire(text)[1]


def many(count: int) -> list[str]:
    return [f"20.{n >> 8}.{n & 255}.0/24" for n in range(count)]


NETWORKS = {
    254: KernelRoute(RouteTable(254, IPV4, 0), wire("10.88.0.0/24"), 2, (NextHop(b"", 2),)),
    1044: KernelRoute(RouteTable(1044, IPV4, 0), wire("10.99.0.0/24"), 2, (NextHop(b"", 3),)),
}


DEFAULT = KernelRoute(RouteTable(254, IPV4, 100), b"\0", 3, hops("10.88.0.254"))


NEIGHBORS = {
    TrackedAddress(table, octets(f"{network}.{n}")): NETWORKS[table]
    for table, network in ((254, "10.88.0"), (1044, "10.99.0"))
    for n in range(1, 255)
}


class Agent:
    """The reconciler with its runner and a writer."""

    def __init__(self, writer: MemoryWriter | None = None, *, deferred: bool = False) -> None:
        self.db = Database()
        self.intent = IntentTables(self.db)
        self.writer = writer or MemoryWriter()
        self.writer.own_routes.update(NEIGHBORS)
        self.kernel = KernelReconciler(
            self.db,
            self.intent,
            self.writer,
            FibOptions(),
            lambda row: row.dialect == "frr",
            lambda: self.now,
        )
        self.runner = Runner(self.db, self.intent.reconcile_statuses, [self.kernel])
        self.kernel.host_changed(NUMBERED)
        self.now = 0.0
        if not deferred:
            self.kernel.end_deferral()

    def instances(self, *rows: Instance) -> Agent:
        with self.db.write(self.intent.instances) as txn:
            for row in rows:
                self.intent.instances.upsert(txn, row)
        return self

    def start(self) -> Agent:
        """Have one instance, and a writer that is there."""
        self.instances(Instance("main", None, 64710, "10.88.0.11", dialect="frr"))
        self.round()
        self.writer.connect()
        return self.settle()

    def round(self) -> None:
        """Run a round, and the rounds that follow at once as only a part of the changes was taken."""
        self.runner.run(self.now)
        installed = self.kernel.installed
        while installed.listed and self.kernel.wanted_tables.has_changed and installed.has_room:
            self.runner.run(self.now)

    def settle(self) -> Agent:
        """Run rounds and the writer until nothing is left to do."""
        for _ in range(4):
            self.round()
            self.writer.run()
            while self.kernel.installed.listed and self.kernel.wanted_tables.has_changed:
                self.round()
                self.writer.run()
        return self

    def table(self, after: PathSet, *prefixes: str, instance: str = "main") -> Agent:
        """Announce a whole table."""
        change = BestPathChange(IPV4_UNICAST, NO_PATHS, after, tuple(map(wire, prefixes)))
        items: list[BestPathItem] = [TableBegin(), TableEnd(), SelectionEnd()]
        if prefixes:
            items.insert(1, change)
        self.kernel.best_paths(instance, items)
        return self.settle()

    def change(
        self, after: PathSet, *prefixes: str, before: PathSet = NO_PATHS, instance: str = "main"
    ) -> Agent:
        wires = tuple(map(wire, prefixes))
        self.kernel.best_paths(instance, [BestPathChange(IPV4_UNICAST, before, after, wires)])
        return self.settle()

    @property
    def routes(self) -> dict[str, NextHopSet]:
        """Our routes of the kernel's main table."""
        return self.of(MAIN)

    def of(self, table: RouteTable) -> dict[str, NextHopSet]:
        kernel = self.writer.kernel
        return {
            f"{'.'.join(map(str, nlri[1:].ljust(4, bytes(1))))}/{nlri[0]}": found
            for (place, nlri), found in kernel.items()
            if place == table
        }

    @property
    def errors(self) -> list[str]:
        rows = self.intent.reconcile_statuses.all(self.db.snapshot())
        return [row.error for row in rows if row.error]


PREFIX = "203.0.113.0/24"
