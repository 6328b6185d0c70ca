"""The metrics of next hops in route selection, and next hops that are not reached."""

from __future__ import annotations

from reconcilers.kernel.writer.protocol_messages import TrackedAddress
from reconcilers.model import NextHops
from speaker.api import UNREACHABLE
from tests.reconcilers.kernel.build import octets
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    DEFAULT,
    NETWORKS,
    NUMBERED,
    Agent,
)

REMOTE, LOST = "192.0.2.9", "198.51.100.9"


def test_next_hops_have_the_metric_of_their_route_and_are_unreachable_without_one() -> None:
    agent = Agent()
    agent.writer.own_routes[TrackedAddress(254, octets(REMOTE))] = DEFAULT
    agent.start()
    addresses = ("10.88.0.1", REMOTE, LOST, "fe80::1")
    agent.kernel.next_hops_received([NextHops("main", "p", addresses), NextHops("x", "p", ())])
    assert agent.kernel.metrics == {"main": {}}
    agent.settle()
    known = {REMOTE: 100, LOST: UNREACHABLE}
    assert agent.kernel.metrics == {"main": known}
    # The route to it comes: the writer goes on looking the address up while no path has it.
    tracked = TrackedAddress(254, octets(LOST))
    agent.kernel.host_changed(NUMBERED)
    agent.settle()
    assert tracked in agent.writer.tracked.addresses
    agent.writer.own_routes[tracked] = NETWORKS[254]
    agent.writer.resolve([tracked])
    assert agent.kernel.metrics == {"main": {REMOTE: 100}}
