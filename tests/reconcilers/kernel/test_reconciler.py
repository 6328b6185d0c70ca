"""The kernel as a target of reconcilers: the runner, the streams of best paths, a writer in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec
import pytest

from reconcilers.kernel.batches import MIN_ROUTES, split
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.reasons import Reason as KernelReason
from reconcilers.kernel.reconciler import KernelRoutes
from reconcilers.kernel.wanted import InstanceRoutes
from reconcilers.kernel.writer.values import (
    IPV4,
    MAX_ROUTES,
    Cause,
    Change,
    Changed,
    Confirmed,
    KernelRoute,
    Move,
    NextHop,
    NextHopSet,
    Reason,
    Routes,
    RouteTable,
    TrackedAddress,
)
from reconcilers.model import (
    Attributes,
    Instance,
    InstanceImport,
    NextHops,
    Peer,
    PrefixRule,
    Route,
)
from reconcilers.tables import IntentTables
from reconcilers.target import Runner
from reconcilers.target.comparison import SLICE_PARTS
from reconcilers.target.reconciler import ReconcileError
from reconcilers.target.verification import Drift, Verification
from resources.host import Host
from speaker.api import (
    NO_PATHS,
    UNREACHABLE,
    BestPathChange,
    BestPathItem,
    InstanceRemoved,
    PathSet,
    SelectionEnd,
    TableBegin,
    TableEnd,
)
from speaker.nlri import IPV4_UNICAST, Family, prefix_to_wire
from statedb import Database
from tests.reconcilers.kernel.build import ETH0, ETH1, HOST, internal, octets, path, paths
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


class Agent:
    """The reconciler with its runner and a writer."""

    def __init__(self, writer: MemoryWriter | None = None, *, deferred: bool = False) -> None:
        self.db = Database()
        self.intent = IntentTables(self.db)
        self.writer = writer or MemoryWriter()
        for n in range(1, 255):
            self.writer.own_routes[TrackedAddress(254, octets(f"10.88.0.{n}"))] = NETWORKS[254]
            self.writer.own_routes[TrackedAddress(1044, octets(f"10.99.0.{n}"))] = NETWORKS[1044]
        self.kernel = KernelRoutes(
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


class TestRoutes:
    def test_best_paths_become_routes_and_follow_every_change(self) -> None:
        agent = Agent().start().table(ONE, PREFIX)
        assert agent.routes == {PREFIX: hops("10.88.0.1")}
        assert agent.change(BOTH, PREFIX, before=ONE).routes == {
            PREFIX: hops("10.88.0.1", "10.88.0.2")
        }
        assert agent.change(NO_PATHS, PREFIX, before=BOTH).routes == {}

    def test_nothing_is_sent_while_nothing_changes(self) -> None:
        agent = Agent().start().table(ONE, PREFIX)
        agent.writer.batches.clear()
        agent.settle()
        agent.change(ONE, PREFIX, before=ONE)
        assert not agent.writer.batches

    def test_prefixes_with_equal_next_hops_are_in_one_entry_of_a_batch(self) -> None:
        agent = Agent().start().table(ONE, *many(100))
        (batch,) = agent.writer.batches
        ((found, routes),) = batch.routes
        assert found == hops("10.88.0.1")
        assert len(routes) == 1

    def test_a_change_does_not_wait_for_the_table_before_it(self) -> None:
        agent = Agent().start().table(BOTH, PREFIX)
        large = tuple(map(wire, many(10 * MAX_ROUTES)))
        agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, large)])
        agent.round()
        change = BestPathChange(IPV4_UNICAST, BOTH, NO_PATHS, (wire(PREFIX),))
        agent.kernel.best_paths("main", [change])
        batches = 0
        while PREFIX in agent.routes:
            agent.round()
            agent.writer.step()
            batches += 1
        # Two were on their way, and of the same peer a quarter of a round are older changes.
        assert batches <= 6
        assert len(agent.routes) < len(large) / 2
        agent.settle()
        assert len(agent.routes) == len(large)

    def test_a_large_table_is_many_batches_of_which_two_are_on_their_way(self) -> None:
        agent = Agent().start()
        agent.kernel.best_paths(
            "main",
            [BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, tuple(map(wire, many(4 * MAX_ROUTES))))],
        )
        agent.writer.run()
        agent.round()
        assert len(agent.writer.sent) == 2
        agent.writer.step()
        assert len(agent.writer.sent) == 2
        agent.settle()
        assert len(agent.routes) == 4 * MAX_ROUTES
        assert len(agent.writer.batches) <= 10

    def test_a_change_of_one_peer_does_not_wait_for_the_table_of_another_one(self) -> None:
        agent = Agent().start().table(TWO, "198.51.100.0/24")
        prefixes = list(map(wire, many(12 * MAX_ROUTES)))
        at = 0

        def turn() -> None:
            """Receive more of the table than the writer takes meanwhile."""
            nonlocal at
            some = tuple(prefixes[at : at + MAX_ROUTES])
            at += len(some)
            if some:
                change = BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, some)
                agent.kernel.best_paths("main", [change])
            agent.round()

        turn()
        for before, after in ((NO_PATHS, TWO), (TWO, NO_PATHS), (NO_PATHS, TWO)):
            change = BestPathChange(IPV4_UNICAST, before, after, (wire(PREFIX),))
            agent.kernel.best_paths("main", [change])
            for _ in range(3):
                turn()
                agent.writer.step()
            assert at < len(prefixes)
            assert (PREFIX in agent.routes) is bool(after)
        assert len(agent.routes) < at
        agent.settle()
        assert len(agent.routes) == at + 2

    def test_a_route_that_the_kernel_refuses_keeps_no_other_one_waiting(self) -> None:
        agent = Agent().start()
        prefixes = many(3 * SLICE_PARTS)
        agent.writer.unusable = {(MAIN, wire(prefixes[0]))}
        agent.table(ONE, *prefixes)
        assert len(agent.routes) == len(prefixes) - 1
        assert agent.errors
        agent.change(ONE, PREFIX)
        agent.change(TWO, prefixes[-1], before=ONE)
        assert agent.routes[PREFIX] == hops("10.88.0.1")
        assert agent.routes[prefixes[-1]] == hops("10.88.0.2")
        assert agent.errors
        agent.writer.unusable.clear()
        agent.now += 60
        agent.settle()
        assert len(agent.routes) == len(prefixes) + 1
        assert not agent.errors

    def test_batches_follow_the_time_that_the_kernel_takes(self) -> None:
        agent = Agent().start()
        agent.writer.seconds_per_route = 0.00002
        agent.table(ONE, *many(5 * MAX_ROUTES))
        sizes = [
            len(split(routes.prefixes))
            for batch in agent.writer.batches[-8:-2]
            for _, tables in batch.routes
            for routes in tables
        ]
        assert max(sizes) <= MIN_ROUTES

    def test_of_a_prefix_that_changes_faster_than_it_is_written_the_last_state_is_sent(
        self,
    ) -> None:
        agent = Agent().start().table(BOTH, *many(3 * MAX_ROUTES))
        agent.writer.batches.clear()
        for after in (ONE, TWO, ONE, TWO) * 5:
            prefixes = tuple(map(wire, many(3 * MAX_ROUTES)))
            agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, BOTH, after, prefixes)])
            agent.round()
        agent.settle()
        assert set(agent.routes.values()) == {hops("10.88.0.2")}
        assert len(agent.writer.batches) <= 8

    def test_an_instance_that_is_removed_takes_its_routes_with_it(self) -> None:
        agent = Agent().start().table(ONE, PREFIX)
        agent.kernel.best_paths("main", [InstanceRemoved()])
        assert not agent.settle().routes

    def test_an_instance_of_a_dialect_that_does_not_install_has_none(self) -> None:
        agent = Agent().instances(Instance("other", None, 1, "10.88.0.11", dialect="x")).start()
        agent.table(ONE, PREFIX, instance="other")
        assert not agent.routes

    def test_of_two_instances_with_a_prefix_in_one_table_the_first_one_has_it(self) -> None:
        agent = Agent().instances(Instance("also", None, 1, "10.88.0.11", dialect="frr")).start()
        agent.table(TWO, PREFIX, instance="main").table(ONE, PREFIX, instance="also")
        assert agent.routes == {PREFIX: hops("10.88.0.1")}
        agent.change(NO_PATHS, PREFIX, before=ONE, instance="also")
        assert agent.routes == {PREFIX: hops("10.88.0.2")}

    def test_a_default_route_follows_the_import_rules(self) -> None:
        agent = Agent().start().table(ONE, "0.0.0.0/0")
        assert not agent.routes
        rules = (PrefixRule("0.0.0.0/0"),)
        with agent.db.write(agent.intent.peers) as txn:
            row = Peer("main", "10.88.0.1", "10.88.0.1", None, 64701, accept=rules)
            agent.intent.peers.upsert(txn, row)
        assert agent.settle().routes == {"0.0.0.0/0": hops("10.88.0.1")}


class TestOwnPrefixes:
    """Prefixes that the node advertises, and that no Loc-RIB has as its own: of Services."""

    def advertise(self, agent: Agent, route_set: str, *prefixes: str) -> None:
        with agent.db.write(agent.intent.routes) as txn:
            agent.intent.routes.delete_all(txn)
            for text in prefixes:
                route = Route(route_set, *prefix_to_wire(text), Attributes(), ())
                agent.intent.routes.upsert(txn, route)
        agent.settle()

    def peer(self, agent: Agent, route_set: str | None) -> None:
        with agent.db.write(agent.intent.peers) as txn:
            row = Peer("main", "10.88.0.1", "10.88.0.1", None, 64701, route_set=route_set)
            agent.intent.peers.upsert(txn, row)
        agent.settle()

    def test_a_peers_route_to_one_is_installed_only_while_the_node_does_not_advertise_it(
        self,
    ) -> None:
        agent = Agent().start().table(ONE, PREFIX, "192.0.2.7/32")
        self.peer(agent, "services")
        self.advertise(agent, "services", "192.0.2.7/32")
        assert list(agent.routes) == [PREFIX]
        route = agent.kernel.wanted_tables.route(MAIN, wire("192.0.2.7/32"))
        assert route is not None
        assert route[1].forwarding.why_not == (
            KernelReason.LOCAL,
            "this node advertises the prefix",
        )
        agent.change(TWO, "192.0.2.7/32", PREFIX, before=ONE)
        assert agent.routes == {PREFIX: hops("10.88.0.2")}
        self.advertise(agent, "services")
        assert sorted(agent.routes) == ["192.0.2.7/32", PREFIX]

    def test_one_prefix_more_of_an_instance_has_no_other_route_judged_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent = Agent().start().table(ONE, *many(500))
        self.peer(agent, "services")
        self.advertise(agent, "services", *many(100))
        judged: list[bytes] = []
        rejected = InstanceRoutes._prefix_rejected

        def noted(routes: InstanceRoutes, family: Family, nlri: bytes, of: PathSet) -> Any:  # noqa: ANN401
            judged.append(nlri)
            return rejected(routes, family, nlri, of)

        monkeypatch.setattr(InstanceRoutes, "_prefix_rejected", noted)
        instance = Instance("main", None, 64710, "10.88.0.11", dialect="frr")
        agent.instances(msgspec.structs.replace(instance, originates=("198.51.100.0/24",)))
        agent.settle()
        assert judged == []
        assert len(agent.routes) == 400

    def test_very_many_prefixes_of_the_node_are_followed_in_slices(self) -> None:
        agent = Agent().start()
        self.peer(agent, "services")
        with agent.db.write(agent.intent.routes) as txn:
            for text in many(12_000):
                route = Route("services", *prefix_to_wire(text), Attributes(), ())
                agent.intent.routes.upsert(txn, route)
        slices = agent.kernel.changes(agent.db.snapshot())
        assert sum(1 for _ in slices) >= 3
        own = agent.kernel.wanted_tables.own
        assert (
            sum(1 for _ in own.among("", IPV4_UNICAST, [wire(t) for t in many(12_000)])) == 12_000
        )

    def test_the_route_sets_of_the_peers_count(self) -> None:
        agent = Agent().start().table(ONE, PREFIX)
        self.advertise(agent, "services", PREFIX)
        assert list(agent.routes) == [PREFIX]
        self.peer(agent, "services")
        assert not agent.routes
        self.peer(agent, None)
        assert list(agent.routes) == [PREFIX]

    def test_a_route_set_of_another_vrf_has_none(self) -> None:
        agent = Agent().start()
        agent.instances(Instance("red", "red", 64710, "10.99.0.11", dialect="frr"))
        agent.settle()
        self.peer(agent, "services")
        self.advertise(agent, "services", PREFIX)
        agent.table(paths(path("10.99.0.1", instance="red")), PREFIX, instance="red")
        agent.table(ONE, PREFIX)
        assert (list(agent.routes), list(agent.of(RED))) == ([], [PREFIX])


class TestNextHops:
    def test_a_next_hop_waits_until_the_kernel_was_asked(self) -> None:
        agent = Agent().start()
        agent.kernel.best_paths(
            "main", [BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, (wire(PREFIX),))]
        )
        agent.round()
        assert agent.kernel.installed.pending == 0
        agent.writer.run()
        assert agent.writer.tracked.addresses == (TrackedAddress(254, octets("10.88.0.1")),)
        assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}

    def test_a_route_stays_as_it_is_until_its_new_next_hop_is_known(self) -> None:
        agent = Agent().start().table(ONE, PREFIX)
        new = BestPathChange(IPV4_UNICAST, ONE, TWO, (wire(PREFIX),))
        agent.kernel.best_paths("main", [new])
        agent.round()
        assert agent.kernel.installed.pending == 0
        assert agent.settle().routes == {PREFIX: hops("10.88.0.2")}

    def test_that_of_another_network_is_the_gateway_of_the_route_there(self) -> None:
        agent = Agent()
        far = TrackedAddress(254, octets("192.0.2.9"))
        agent.writer.own_routes[far] = DEFAULT
        agent.start().table(paths(internal("192.0.2.9")), PREFIX)
        assert agent.routes == {PREFIX: hops("10.88.0.254")}
        agent.writer.own_routes[far] = None
        agent.writer.resolve([far])
        assert not agent.settle().routes
        agent.writer.own_routes[far] = DEFAULT._replace(next_hops=hops("10.88.0.253"))
        agent.writer.resolve([far])
        assert agent.settle().routes == {PREFIX: hops("10.88.0.253")}

    def test_another_gateway_is_one_message_for_all_routes_of_the_set(self) -> None:
        agent = Agent()
        far = TrackedAddress(254, octets("192.0.2.9"))
        agent.writer.own_routes[far] = DEFAULT
        agent.start().table(paths(internal("192.0.2.9")), *many(100))
        agent.writer.batches.clear()
        agent.writer.own_routes[far] = DEFAULT._replace(next_hops=hops("10.88.0.253"))
        agent.writer.resolve([far])
        agent.settle()
        assert set(agent.routes.values()) == {hops("10.88.0.253")}
        (batch,) = agent.writer.batches
        assert batch.moves == (Move(hops("10.88.0.254"), hops("10.88.0.253")),)
        assert not batch.routes

    def test_an_interface_that_is_gone_takes_its_routes_with_it_until_it_is_back(self) -> None:
        agent = Agent().start()
        unnumbered = path(
            "", peer="eth0", address="fe80::1", interface="eth0", link_local=octets("fe80::1")
        )
        agent.table(paths(unnumbered), PREFIX)
        assert agent.routes == {PREFIX: hops("fe80::1")}
        agent.kernel.host_changed(Host())
        assert not agent.settle().routes
        agent.kernel.host_changed(NUMBERED)
        assert agent.settle().routes == {PREFIX: hops("fe80::1")}


class TestSessions:
    def test_a_peer_that_is_lost_is_one_message_before_its_routes_are_withdrawn(self) -> None:
        agent = Agent().start().table(BOTH, *many(100))
        agent.writer.batches.clear()
        agent.kernel.session_lost("main", "10.88.0.1")
        agent.settle()
        assert set(agent.routes.values()) == {hops("10.88.0.2")}
        agent.change(TWO, *many(100), before=BOTH)
        (batch,) = agent.writer.batches
        assert batch.moves == (Move(hops("10.88.0.1", "10.88.0.2"), hops("10.88.0.2")),)

    def test_the_last_peer_takes_all_its_routes_with_it(self) -> None:
        agent = Agent().start().table(ONE, *many(100))
        agent.kernel.session_lost("main", "10.88.0.1")
        assert not agent.settle().routes
        agent.change(NO_PATHS, *many(100), before=ONE)
        assert [batch.removed for batch in agent.writer.batches[1:]] == [()]

    def test_a_peer_that_comes_back_is_used_again(self) -> None:
        agent = Agent().start().table(BOTH, PREFIX)
        agent.kernel.session_lost("main", "10.88.0.1")
        agent.settle()
        agent.kernel.session_restored("main", "10.88.0.1")
        assert agent.settle().routes == {PREFIX: hops("10.88.0.1", "10.88.0.2")}

    def test_a_table_that_is_announced_again_loses_what_is_not_in_it(self) -> None:
        agent = Agent().start().table(ONE, PREFIX, "198.51.100.0/24")
        change = BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, (wire(PREFIX),))
        agent.kernel.best_paths("main", [TableBegin(), change, TableEnd()])
        assert len(agent.settle().routes) == 2
        agent.kernel.best_paths("main", [SelectionEnd()])
        assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}

    def test_next_hops_move_before_their_routes_are_looked_for(self) -> None:
        agent = Agent().start().table(BOTH, *many(3))
        routes = agent.kernel.wanted_tables._instances["main"].routes
        sent: list[int] = []
        having = routes.having

        def looked(family: Family, some: AbstractSet[PathSet]) -> list[bytes]:
            sent.append(len(agent.writer.sent))
            return having(family, some)

        routes.having = looked  # type: ignore[method-assign]
        agent.kernel.session_lost("main", "10.88.0.2")
        assert sent == [1]


class TestAdoption:
    """What the kernel has from an earlier process."""

    @pytest.fixture
    def writer(self) -> MemoryWriter:
        writer = MemoryWriter()
        writer.kernel = {
            (MAIN, wire(PREFIX)): hops("10.88.0.1"),
            (MAIN, wire("198.51.100.0/24")): hops("10.88.0.1"),
            (RouteTable(254, IPV4, 99), wire(PREFIX)): hops("10.88.0.1"),
        }
        return writer

    def test_what_is_right_is_not_written(self, writer: MemoryWriter) -> None:
        agent = Agent(writer, deferred=True).start().table(ONE, PREFIX, "198.51.100.0/24")
        assert not writer.batches
        assert len(agent.routes) == 2

    def test_what_is_stale_is_kept_until_the_deferral_ends(self, writer: MemoryWriter) -> None:
        agent = Agent(writer, deferred=True).start().table(ONE, PREFIX)
        assert len(agent.routes) == 2
        agent.kernel.end_deferral()
        assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}

    def test_what_was_announced_and_is_withdrawn_does_not_wait_for_that(
        self, writer: MemoryWriter
    ) -> None:
        """Nor does what no earlier process has installed."""
        agent = Agent(writer, deferred=True).start()
        new = "203.0.113.0/25"
        before = dict(agent.routes)
        announced = next(iter(before))
        agent.change(ONE, announced, new)
        assert set(agent.routes) == {*before, new}
        agent.change(NO_PATHS, announced, new, before=ONE)
        assert set(agent.routes) == before.keys() - {announced}

    def test_routes_of_another_metric_go_with_it(self, writer: MemoryWriter) -> None:
        agent = Agent(writer, deferred=True).start().table(ONE, PREFIX)
        assert agent.of(RouteTable(254, IPV4, 99))
        agent.kernel.end_deferral()
        assert not agent.settle().of(RouteTable(254, IPV4, 99))

    def test_what_is_different_is_repaired_at_once(self, writer: MemoryWriter) -> None:
        agent = Agent(writer, deferred=True).start().table(TWO, PREFIX)
        assert agent.routes[PREFIX] == hops("10.88.0.2")

    def test_a_writer_that_is_started_again_is_given_what_it_lacks(self) -> None:
        agent = Agent().start().table(ONE, *many(10))
        agent.writer.kernel.popitem()
        agent.change(ONE, PREFIX)
        agent.writer.kernel[MAIN, wire("198.51.100.0/24")] = hops("10.88.0.9")
        agent.writer.batches.clear()
        agent.writer.connect()
        assert set(agent.settle().routes) == {*many(10), PREFIX}
        assert len(agent.writer.batches) == 1

    def test_what_was_sent_to_a_writer_that_is_lost_is_sent_to_the_next_one(self) -> None:
        agent = Agent().start().table(TWO, "198.51.100.0/24")
        agent.kernel.best_paths(
            "main", [BestPathChange(IPV4_UNICAST, NO_PATHS, TWO, (wire(PREFIX),))]
        )
        agent.round()
        assert agent.writer.sent
        agent.writer.connect()
        assert set(agent.settle().routes) == {"198.51.100.0/24", PREFIX}

    def test_before_the_kernel_is_known_nothing_is_sent(self) -> None:
        agent = Agent().instances(Instance("main", None, 1, "10.88.0.11", dialect="frr"))
        agent.round()
        agent.table(ONE, PREFIX)
        assert not agent.writer.batches
        assert agent.runner.run(0.0).complete
        agent.writer.connect()
        assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}


class TestOthers:
    """What the kernel refuses, and what other programs do."""

    def test_a_place_that_another_program_has_stays_its_own_until_it_is_free(self) -> None:
        agent = Agent()
        agent.writer.foreign.add((MAIN, wire(PREFIX)))
        agent.start().table(ONE, PREFIX, "198.51.100.0/24")
        assert set(agent.routes) == {"198.51.100.0/24"}
        assert agent.kernel.installed.failure(MAIN, wire(PREFIX)).reason == Reason.OCCUPIED  # type: ignore[union-attr]
        assert not agent.errors
        agent.writer.batches.clear()
        agent.now += 60
        agent.settle()
        assert not agent.writer.batches
        agent.writer.free(MAIN, wire(PREFIX))
        assert PREFIX in agent.settle().routes

    def test_a_route_that_is_missing_is_installed_again(self) -> None:
        agent = Agent().start().table(ONE, PREFIX)
        agent.writer.change(Reason.MISSING, MAIN, wire(PREFIX))
        assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}
        assert agent.kernel.installed.counts.changed == {"event": 1}

    def test_one_that_is_not_wanted_any_more_is_not(self) -> None:
        agent = Agent().start().table(ONE, PREFIX).change(NO_PATHS, PREFIX, before=ONE)
        agent.writer.kernel[MAIN, wire(PREFIX)] = hops("10.88.0.1")
        agent.writer.change(Reason.UNEXPECTED, MAIN, wire(PREFIX))
        assert not agent.settle().routes

    def test_an_error_is_the_status_of_the_table_and_is_retried(self) -> None:
        agent = Agent()
        agent.writer.reject = Reason.NOT_PERMITTED
        agent.start().table(ONE, PREFIX)
        assert agent.errors == ["1 routes: NotPermitted: no"]
        agent.writer.reject = None
        agent.now += 60
        assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}
        assert not agent.errors

    def test_routes_that_failed_wait_and_others_do_not_wait_for_them(self) -> None:
        agent = Agent()
        agent.writer.reject = Reason.TABLE_FULL
        agent.start().table(ONE, *many(10))
        agent.writer.reject = None
        agent.writer.batches.clear()
        agent.change(ONE, PREFIX)
        assert set(agent.routes) == {PREFIX}
        assert agent.errors == ["10 routes: TableFull: no"]
        agent.settle()
        assert len(agent.writer.batches) == 1
        agent.now += 60
        assert set(agent.settle().routes) == {*many(10), PREFIX}
        assert not agent.errors

    def test_a_kernel_that_goes_on_failing_is_asked_less_and_less_often(self) -> None:
        agent = Agent()
        agent.writer.reject = Reason.NOT_PERMITTED
        agent.start().table(ONE, PREFIX)
        for _ in range(100):
            agent.now += 1
            agent.settle()
        assert len(agent.writer.batches) < 12
        assert agent.errors == ["1 routes: NotPermitted: no"]

    def test_a_removal_that_failed_is_retried(self) -> None:
        agent = Agent().start().table(ONE, PREFIX)
        installed = agent.kernel.installed
        installed._keep(MAIN, [wire(PREFIX)])
        agent.kernel.end_deferral()
        agent.change(NO_PATHS, PREFIX, before=ONE)
        assert not agent.routes

    @pytest.mark.parametrize("reason", [Reason.OCCUPIED, Reason.TABLE_FULL])
    def test_a_route_that_failed_and_is_withdrawn_is_no_failure(self, reason: Reason) -> None:
        agent = Agent()
        agent.writer.reject = reason
        agent.start().table(ONE, PREFIX)
        installed = agent.kernel.installed
        assert installed.failures() == {reason: 1}
        seen = []
        agent.kernel.changed.subscribe(lambda _: seen.append(installed.failures()))
        agent.change(NO_PATHS, PREFIX, before=ONE)
        assert seen[-1] == {}, "health and metrics are made again"
        assert not agent.errors
        # A place that was another program's may be free the next time.
        agent.writer.reject = None
        assert agent.change(ONE, PREFIX).routes == {PREFIX: hops("10.88.0.1")}

    def test_routes_that_failed_go_with_their_instance(self) -> None:
        agent = Agent()
        agent.writer.reject = Reason.TABLE_FULL
        agent.start().table(ONE, PREFIX)
        with agent.db.write(agent.intent.instances) as txn:
            agent.intent.instances.delete(txn, ("main",))
        agent.settle()
        assert agent.kernel.installed.failures() == {}
        assert not agent.errors

    def test_a_failure_does_not_hide_the_newer_route_that_follows_it(self) -> None:
        agent = Agent().start().table(ONE, "198.51.100.0/24").change(TWO, "198.51.101.0/24")
        others = agent.routes
        nlri = wire(PREFIX)
        for before, after in ((NO_PATHS, ONE), (ONE, TWO)):
            agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, before, after, (nlri,))])
            agent.round()
        agent.writer.unusable = {(MAIN, nlri)}
        agent.writer.step()
        agent.writer.unusable.clear()
        # The second route is on its way; the best path goes before it is there.
        assert agent.change(NO_PATHS, PREFIX, before=TWO).routes == others

    def test_a_route_that_another_program_removes_while_a_newer_one_follows(self) -> None:
        agent = Agent().start().table(ONE, PREFIX).change(TWO, "198.51.101.0/24")
        nlri = wire(PREFIX)
        agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, ONE, TWO, (nlri,))])
        agent.round()
        agent.writer.change(Reason.MISSING, MAIN, nlri)
        agent.change(NO_PATHS, PREFIX, before=TWO)
        assert PREFIX not in agent.routes
        agent.change(ONE, PREFIX)
        agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, ONE, TWO, (nlri,))])
        agent.round()
        # Reported behind the write, and before its confirmation.
        agent.writer.kernel.pop((MAIN, nlri))
        (batch,) = agent.writer.sent
        agent.writer.sent.clear()
        agent.writer.report(Changed(Cause.EVENT, (Change(Reason.MISSING, (Routes(MAIN, nlri),)),)))
        agent.writer.report(Confirmed(batch.number, 1, (), 0.001))  # type: ignore[union-attr]
        assert agent.settle().routes[PREFIX] == hops("10.88.0.2")

    def test_a_retry_while_a_new_writer_lists_its_routes_is_void(self) -> None:
        agent = Agent().start()
        agent.writer.reject = Reason.TABLE_FULL
        agent.table(ONE, PREFIX)
        agent.writer.reject = None
        agent.writer.connect()
        agent.now += 60
        agent.round()
        change = BestPathChange(IPV4_UNICAST, ONE, NO_PATHS, (wire(PREFIX),))
        agent.kernel.best_paths("main", [change])
        agent.settle()
        assert set(agent.change(TWO, "198.51.101.0/24").routes) == {"198.51.101.0/24"}

    def test_a_writer_that_starts_twice_has_all_tables_compared(self) -> None:
        agent = Agent().start().table(ONE, PREFIX)
        agent.writer.kernel.clear()
        for _ in range(2):
            # No round compares anything between the listings.
            agent.writer.connect()
            agent.writer.run()
        assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}

    def test_a_failure_that_nothing_is_left_of_ends_with_the_comparison_of_the_table(self) -> None:
        agent = Agent().start().table(ONE, PREFIX)
        agent.writer.connect()
        agent.writer.run()
        agent.writer.change(Reason.MISSING, MAIN, wire(PREFIX))
        agent.change(NO_PATHS, PREFIX, before=ONE)
        assert agent.kernel.installed.failures() == {}

    def test_next_hops_of_a_session_that_is_back_are_looked_up(self) -> None:
        agent = Agent().start()
        agent.kernel.session_lost("main", "10.88.0.1")
        assert agent.table(ONE, PREFIX).routes == {}
        agent.kernel.session_restored("main", "10.88.0.1")
        assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}

    def test_verification_finds_nothing_and_repairs_what_differs(self) -> None:
        agent = Agent().start().table(ONE, PREFIX)
        assert [
            one for found in Verification(agent.runner, lambda: 0.0).slices() for one in found
        ] == []
        agent.kernel.installed._held[MAIN].clear()
        (drift,) = [
            one for found in Verification(agent.runner, lambda: 0.0).slices() for one in found
        ]
        assert (drift.object, drift.missing, drift.details) == ("/".join(KEY), 1, (PREFIX,))

    def test_verification_on_request_compares_with_what_the_kernel_has_now(self) -> None:
        agent = Agent().start().table(ONE, PREFIX, "20.0.0.0/8", "21.0.0.0/8")
        kernel = agent.writer.kernel

        async def verify() -> list[Drift]:
            kernel.pop((MAIN, wire(PREFIX)))
            kernel[MAIN, wire("20.0.0.0/8")] = hops("10.88.0.2")
            kernel[MAIN, wire("22.0.0.0/8")] = hops("10.88.0.2")
            asyncio.get_running_loop().call_soon(agent.writer.run)
            async with agent.kernel.read_again():
                # What the writer reports meanwhile is no work for a round before the comparison.
                agent.round()
                found = Verification(agent.runner, lambda: 0.0).slices()
                return [one for drifts in found for one in drifts]

        (drift,) = asyncio.run(verify())
        assert (drift.missing, drift.different, drift.unexpected) == (1, 1, 1)
        agent.settle()
        assert agent.routes == dict.fromkeys(
            (PREFIX, "20.0.0.0/8", "21.0.0.0/8"), hops("10.88.0.1")
        )

    def test_a_writer_that_is_not_there_is_an_error_of_the_verification(self) -> None:
        async def verify() -> None:
            async with Agent().kernel.read_again():
                pytest.fail("there is nothing to compare")

        with pytest.raises(ReconcileError, match="does not answer"):
            asyncio.run(verify())


class TestSelection:
    """What route selection knows of next hops."""

    REMOTE, LOST = "192.0.2.9", "198.51.100.9"

    def test_next_hops_have_the_metric_of_their_route_and_are_unreachable_without_one(self) -> None:
        agent = Agent()
        agent.writer.own_routes[TrackedAddress(254, octets(self.REMOTE))] = DEFAULT
        agent.start()
        addresses = ("10.88.0.1", self.REMOTE, self.LOST, "fe80::1")
        agent.kernel.next_hops_received([NextHops("main", "p", addresses), NextHops("x", "p", ())])
        assert agent.kernel.metrics == {"main": {}}
        agent.settle()
        known = {self.REMOTE: 100, self.LOST: UNREACHABLE}
        assert agent.kernel.metrics == {"main": known}
        # The route to it comes: the writer goes on looking the address up while no path has it.
        tracked = TrackedAddress(254, octets(self.LOST))
        agent.kernel.host_changed(NUMBERED)
        agent.settle()
        assert tracked in agent.writer.tracked.addresses
        agent.writer.own_routes[tracked] = NETWORKS[254]
        agent.writer.resolve([tracked])
        assert agent.kernel.metrics == {"main": {self.REMOTE: 100}}


class TestVrfs:
    RED = Instance("red", "red", 64710, "10.88.0.11", dialect="frr")

    def test_the_routes_of_a_vrf_stand_in_its_table(self) -> None:
        agent = Agent().instances(self.RED).start()
        agent.table(paths(path("10.99.0.1", instance="red")), PREFIX, instance="red")
        agent.table(ONE, PREFIX)
        assert agent.of(RED) == {PREFIX: hops("10.99.0.1", interface=3)}
        assert agent.routes == {PREFIX: hops("10.88.0.1")}

    def test_they_follow_it_to_another_table_and_go_with_it(self) -> None:
        agent = Agent().instances(self.RED).start()
        agent.table(paths(path("10.99.0.1", instance="red")), PREFIX, instance="red")
        (vrf,) = NUMBERED.vrfs or ()
        moved = msgspec.structs.replace(NUMBERED, vrfs=(msgspec.structs.replace(vrf, table=77),))
        for n in range(1, 255):
            address = TrackedAddress(77, octets(f"10.99.0.{n}"))
            agent.writer.own_routes[address] = NETWORKS[1044]
        agent.kernel.host_changed(moved)
        agent.settle()
        assert not agent.of(RED)
        assert agent.of(RouteTable(77, IPV4, 20)) == {PREFIX: hops("10.99.0.1", interface=3)}
        agent.kernel.host_changed(msgspec.structs.replace(NUMBERED, vrfs=()))
        agent.settle()
        assert not agent.of(RouteTable(77, IPV4, 20))

    def test_a_vrf_with_the_table_of_another_one_waits_until_it_has_its_own(self) -> None:
        blue = Instance("blue", "blue", 64710, "10.88.0.11", dialect="frr")
        agent = Agent().instances(self.RED, blue)
        (vrf,) = NUMBERED.vrfs or ()
        other = msgspec.structs.replace(vrf, name="blue")
        second = "198.51.100.0/24"
        agent.kernel.host_changed(msgspec.structs.replace(NUMBERED, vrfs=(vrf, other)))
        agent.start()
        for name in ("red", "blue"):
            agent.table(paths(path("10.99.0.1", instance=name)), PREFIX, instance=name)
        agent.table(paths(path("10.99.0.1", instance="red")), PREFIX, second, instance="red")
        assert agent.of(RED) == {PREFIX: hops("10.99.0.1", interface=3)}
        assert agent.kernel.wanted_tables.problems() == [
            "VRF red has the table of the VRF blue, whose routes stand there: give it its own"
        ]
        own = msgspec.structs.replace(other, table=77)
        agent.kernel.host_changed(msgspec.structs.replace(NUMBERED, vrfs=(vrf, own)))
        agent.settle()
        assert set(agent.of(RED)) == {PREFIX, second}
        assert not agent.kernel.wanted_tables.problems()

    def test_an_imported_route_is_resolved_in_the_vrf_that_it_comes_from(self) -> None:
        importing = msgspec.structs.replace(self.RED, imports=(InstanceImport("main", None),))
        agent = Agent().instances(importing).start()
        imported = path("10.88.0.1", instance="main", imported=True)
        agent.table(paths(imported), PREFIX, instance="red")
        assert agent.of(RED) == {PREFIX: hops("10.88.0.1")}
