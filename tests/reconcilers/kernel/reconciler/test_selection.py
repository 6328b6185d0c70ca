"""The metrics of next hops in route selection, and next hops that are not reached."""

from __future__ import annotations

from reconcilers.kernel.writer.protocol_messages import TrackedAddress
from reconcilers.model import NextHops
from reconcilers.sliced_work import finish
from speaker.api import UNREACHABLE
from tests.reconcilers.kernel.build import octets
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    DEFAULT,
    NETWORKS,
    NUMBERED,
    ONE,
    Agent,
)

REMOTE, LOST = "192.0.2.9", "198.51.100.9"


def test_next_hops_have_the_metric_of_their_route_and_are_unreachable_without_one() -> None:
    agent = Agent()
    agent.writer.own_routes[TrackedAddress(254, octets(REMOTE))] = DEFAULT
    agent.start()
    addresses = ("10.88.0.1", REMOTE, LOST, "fe80::1")
    rows = [NextHops("main", "p", addresses), NextHops("x", "p", ())]
    due: list[None] = []
    agent.kernel.metrics_due.subscribe(due.append)
    assert finish(agent.kernel.select(rows)) == {"main": {}}
    assert due == []
    agent.settle()
    assert due
    known = {REMOTE: 100, LOST: UNREACHABLE}
    assert finish(agent.kernel.select(rows)) == {"main": known}
    # The route to it comes: the writer goes on looking the address up while no path has it.
    tracked = TrackedAddress(254, octets(LOST))
    agent.kernel.host_changed(NUMBERED)
    agent.settle()
    assert tracked in agent.writer.tracked.addresses
    agent.writer.own_routes[tracked] = NETWORKS[254]
    agent.writer.resolve([tracked])
    assert finish(agent.kernel.select(rows)) == {"main": {REMOTE: 100}}


def test_the_next_hops_of_many_peers_are_looked_up_in_slices() -> None:
    """And the writer is sent the next hops of all peers, whatever other routes need meanwhile."""
    agent, peers = Agent().start(), 8
    addresses = [[f"192.0.{peer}.{n}" for n in range(256)] for peer in range(peers)]
    rows = [NextHops("main", f"p{n}", tuple(some)) for n, some in enumerate(addresses)]
    finish(agent.kernel.select(rows[:1]))
    agent.settle()
    slices, most = 0, 0
    work = agent.kernel.select(rows)
    while True:
        before = agent.kernel.routing.revision
        try:
            next(work)
        except StopIteration as end:
            metrics = end.value
            break
        slices += 1
        most = max(most, agent.kernel.routing.revision - before)
        agent.change(ONE, f"20.{slices}.0.0/16")
    assert slices == peers * 256 // (2 * 256)
    assert most <= 2 * 256
    assert metrics == {"main": dict.fromkeys(addresses[0], UNREACHABLE)}
    agent.writer.run()
    tracked = {each.address for each in agent.writer.tracked.addresses}
    assert {octets(text) for some in addresses for text in some} < tracked
    assert octets("10.88.0.1") in tracked
