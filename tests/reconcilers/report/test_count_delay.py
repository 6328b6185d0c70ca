"""Writes that can wait are spread over the cluster; the more nodes, the longer numbers wait."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from reconcilers.dialect import ObjectStatus
from reconcilers.model import ObjectRef
from reconcilers.report.events import EventCorrelator, Occurrence, Regarding
from reconcilers.target.write_spread import WriteSpread
from resources.cilium.status import InstanceStatus, NodeConfigStatus, PeerStatus, RouteCount
from tests.reconcilers.report.test_events import next_write
from tests.reconcilers.report.test_statuses import Api, Run, run

NODES = 5000


def status(routes: int, state: str = "established") -> ObjectStatus:
    counts = (RouteCount(afi="ipv4", safi="unicast", advertised=routes, received=1),)
    peer = PeerStatus(name="p", peer_address="192.0.2.1", peering_state=state, route_count=counts)
    instance = InstanceStatus(name="i", local_asn=65001, peers=(peer,))
    return ObjectStatus(
        ObjectRef("CiliumBGPNodeConfig", "", "n1"),
        "u",
        NodeConfigStatus(bgp_instances=(instance,)),
        counts=frozenset({"routeCount"}),
    )


class Agent(Run):
    """The reconciler of statuses, and a status that changes when the test wants it to."""

    def __init__(self, *, nodes: int = 1, seed: int = 1) -> None:
        super().__init__(Api(), nodes=nodes, seed=seed)
        self.row = status(0)

    async def pass_until(self, end: float, *, churn: bool = False) -> None:
        """Step each second; with ``churn`` the number of routes changes each time."""
        loop = asyncio.get_running_loop()
        while loop.time() < end:
            if churn:
                self.row = status(int(loop.time()) + 1)
            await self.step()
            await asyncio.sleep(1)

    @property
    def writes(self) -> list[float]:
        """The times of the writes."""
        times: list[float] = self.api.times("patch")
        return times


def test_a_state_is_written_at_once_and_numbers_alone_at_most_every_minute() -> None:
    async def scenario() -> None:
        agent = Agent()
        await agent.pass_until(300, churn=True)
        assert 4 <= len(agent.writes) <= 6
        assert all(after - before >= 60 for before, after in pairwise(agent.writes[1:]))
        agent.row = status(1000, "idle")
        began = asyncio.get_running_loop().time()
        await agent.pass_until(began + 6)
        assert agent.writes[-1] - began <= 5

    run(scenario)


def test_a_number_that_becomes_or_was_zero_is_written_after_a_moment() -> None:
    async def scenario() -> None:
        agent = Agent(nodes=20)
        await agent.pass_until(10)
        agent.row = status(7)
        await agent.pass_until(200)
        assert len(agent.writes) == 2
        assert agent.writes[1] <= 12
        agent.row = status(0)
        await agent.pass_until(220)
        assert len(agent.writes) == 3

    run(scenario)


def test_the_numbers_after_a_change_of_state_are_written_within_a_minute_or_so() -> None:
    async def scenario() -> None:
        agent = Agent(nodes=NODES)
        agent.row = status(3)
        await agent.pass_until(1000)
        assert len(agent.writes) == 1
        agent.row = status(200)
        await agent.pass_until(1400)
        assert len(agent.writes) == 2
        agent.row = status(201)
        await agent.pass_until(2600)
        assert len(agent.writes) == 2

    run(scenario)


@pytest.mark.parametrize(("nodes", "least", "most"), [(40, 300, 600), (5000, 1800, 3600)])
def test_the_changes_of_many_services_are_one_write_of_a_node(
    nodes: int, least: int, most: int
) -> None:
    async def scenario() -> None:
        agent = Agent(nodes=nodes)
        agent.row = status(100)
        await agent.pass_until(400)  # the numbers after the first state
        agent.row = status(101)
        await agent.pass_until(1000)
        known = len(agent.writes)
        for number in range(20):
            agent.row = status(102 + number)
            await agent.pass_until(1001.0 + number)
        await agent.pass_until(1000.0 + least - 1)
        assert len(agent.writes) - known <= 1
        await agent.pass_until(1021.0 + most)
        assert len(agent.writes) - known == 1

    run(scenario)


def test_the_count_of_an_event_is_written_as_seldom() -> None:
    occurrence = Occurrence(
        Regarding(ObjectRef("CiliumBGPNodeConfig", "", "n1"), "cilium.io/v2"),
        "Warning", "SessionDown", "Session", "p is down",
    )  # fmt: skip
    events = EventCorrelator("n1", WriteSpread(lambda: 0.5, lambda: NODES))
    written = []
    for second in range(600):
        events.record(occurrence, float(second), 1e9 + second)
        while (write := next_write(events, float(second), 1e9 + second)) is not None:
            events.written(write, float(second))
            written.append(second)
    # At once when it happens, then its count.
    assert written[0] == 0
    assert all(after - before >= 60 for before, after in pairwise(written))
