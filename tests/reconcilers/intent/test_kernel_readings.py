"""A dialect that waits for the kernel stops no other dialect, and not for ever: in virtual time."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from reconcilers.dialect import HostNeeds, NodeContext, NodeIntent
from reconcilers.intent.kernel_readings import WAIT_SECONDS
from reconcilers.intent.summary import Summary
from reconcilers.model import PendingDialect
from resources.core.kinds import SERVICE
from resources.host import Host, KernelTable
from statedb import Initializer, ReadTxn, Snapshot, Table
from tests.dialects.beacon.dialect import BeaconDialect
from tests.dialects.beacon.kinds import BEACON
from tests.dialects.objects import beacon
from tests.reconcilers.build import NODE, service, usual
from tests.reconcilers.intent.test_dialect_readings import _written_by_the_operator
from tests.support import kinds

CILIUMS, BEACONS = "192.0.2.9", "192.0.2.10"


class Redistributing(BeaconDialect):
    """A dialect whose objects redistribute routes of the kernel."""

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:
        intent = super().compile(snapshot, context)
        if not intent.peers:
            return intent
        routes = frozenset({KernelTable(198)})
        return replace(intent, kernel_tables=routes, followed=(self.tables.kernel_routes,))


class OnInterface(BeaconDialect):
    """A dialect whose objects refer to an interface."""

    extensions: ClassVar = (
        HostNeeds(
            lambda dialect, snapshot, node: (
                dialect.tables.of(BEACON).get(snapshot, ("", node)) is not None
            )
        ),
    )


class Agent:
    """Cilium's objects, and a Beacon that needs the kernel, which is not read yet."""

    def __init__(self, dialect: type[BeaconDialect], *, beacon_at_start: bool = True) -> None:
        self.now = 100.0
        self.cluster = usual(also=[dialect], operator=False, clock=lambda: self.now)
        self.cluster.put(kinds.NODE_CONFIG, _written_by_the_operator())
        tables = self.cluster.resources
        self.table = tables.kernel_routes if dialect is Redistributing else tables.host
        self._read: Initializer = self.table.register_initializer("kernel")
        if beacon_at_start:
            self.add_beacon()

    def add_beacon(self) -> None:
        self.cluster.put(BEACON, beacon(NODE, peerAddress=BEACONS, peerASN=65010))

    def read(self) -> None:
        """Let the kernel have been read."""
        with self.cluster.db.write(self.table) as txn:
            self._read(txn)
            if self.table is self.cluster.resources.host:
                self.cluster.resources.host.upsert(txn, Host())

    def after(self, seconds: float) -> Summary:
        self.now += seconds
        return self.cluster.run()

    @property
    def peers(self) -> set[str]:
        rows = self.cluster.intent.peers.all(self.cluster.db.snapshot())
        return {str(peer.address) for peer in rows}

    @property
    def pending(self) -> list[PendingDialect]:
        return list(self.cluster.intent.pending_dialects.all(self.cluster.db.snapshot()))

    @property
    def problems(self) -> list[str]:
        rows = self.cluster.intent.problems.all(self.cluster.db.snapshot())
        return [row.message for row in rows if "the kernel was not read" in row.message]


def both() -> list[type[BeaconDialect]]:
    return [Redistributing, OnInterface]


def test_all_dialects_of_a_start_are_compiled_together_once_the_kernel_is_read() -> None:
    for dialect in both():
        agent = Agent(dialect)
        summary = agent.after(0)
        assert (summary.ready, summary.waiting_for) == (False, (agent.table.name,))
        assert summary.retry == WAIT_SECONDS
        agent.read()
        assert agent.after(1).ready
        assert (agent.peers, agent.pending) == ({CILIUMS, BEACONS}, [])


def test_a_kernel_that_cannot_be_read_is_waited_for_for_ten_seconds_and_a_problem() -> None:
    for dialect in both():
        agent = Agent(dialect)
        assert not agent.after(0).ready
        assert not agent.after(WAIT_SECONDS - 0.1).ready
        summary = agent.after(0.1)
        assert (summary.ready, summary.waiting_for) == (True, ())
        assert (agent.peers, agent.pending) == ({CILIUMS, BEACONS}, [])
        (problem,) = agent.problems
        assert f"within 10 s ({agent.table.name})" in problem
        agent.read()
        assert agent.after(60).ready
        assert agent.problems == []


def test_a_dialect_in_effect_keeps_its_intent_until_interfaces_are_read() -> None:
    agent = Agent(OnInterface, beacon_at_start=False)
    assert agent.after(0).ready
    agent.add_beacon()
    summary = agent.after(1)
    assert (summary.ready, summary.waiting_for) == (True, ("host",))
    assert summary.retry == WAIT_SECONDS
    assert (agent.peers, agent.pending) == ({CILIUMS}, [PendingDialect("beacon", ("host",))])
    # No table changes: the dialect is compiled all the same.
    assert agent.after(WAIT_SECONDS).waiting_for == ()
    assert (agent.peers, agent.pending) == ({CILIUMS, BEACONS}, [])
    assert len(agent.problems) == 1


def test_routes_that_a_dialect_in_effect_redistributes_anew_are_added_when_they_are_read() -> None:
    agent = Agent(Redistributing, beacon_at_start=False)
    assert agent.after(0).ready
    agent.add_beacon()
    assert agent.after(1).waiting_for == ()
    assert agent.peers == {CILIUMS, BEACONS}


def test_a_dialect_that_is_read_late_waits_alone_for_the_routes_that_it_redistributes() -> None:
    agent = Agent(Redistributing)
    beacons = agent.cluster.resources.of(BEACON)
    listed = beacons.register_initializer("slow")
    assert not agent.after(0).ready
    assert agent.after(WAIT_SECONDS).ready
    assert agent.peers == {CILIUMS}
    with agent.cluster.db.write(beacons) as txn:
        listed(txn)
    summary = agent.after(30)
    assert (summary.ready, summary.waiting_for) == (True, ("kernel-routes",))
    assert agent.peers == {CILIUMS}
    assert agent.pending == [PendingDialect("beacon", ("kernel-routes",))]
    agent.read()
    assert agent.after(0).waiting_for == ()
    assert (agent.peers, agent.pending) == ({CILIUMS, BEACONS}, [])


def test_once_the_kernel_is_read_no_round_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    initialized = Table.initialized

    def recorded(table: Table[Any], txn: ReadTxn) -> bool:
        asked.append(table.name)
        return initialized(table, txn)

    monkeypatch.setattr(Table, "initialized", recorded)
    for dialect in both():
        agent = Agent(dialect)
        assert not agent.after(0).ready
        assert agent.table.name in asked
        agent.read()
        assert agent.after(1).ready
        asked.clear()
        agent.cluster.put(SERVICE, service("web", "198.51.100.1"))
        assert agent.after(1).routes == 1
        agent.cluster.put(BEACON, beacon(NODE, peerAddress=BEACONS, peerASN=65011))
        assert agent.after(1).dialects == ("beacon",)
        assert asked == []
