"""Next hops of routes: on which interface, and what follows their changes."""

from __future__ import annotations

import msgspec

from reconcilers.kernel.writer.protocol_messages import (
    Move,
    NextHop,
    Resolution,
    Resolved,
    TrackedAddress,
)
from reconcilers.model import Instance
from resources.host import Host
from speaker.api import NO_PATHS, BestPathChange
from speaker.nlri import IPV4_UNICAST
from tests.reconcilers.kernel.build import internal, octets, path, paths
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    DEFAULT,
    NETWORKS,
    NUMBERED,
    ONE,
    PREFIX,
    TWO,
    Agent,
    hops,
    many,
    wire,
)


def test_a_next_hop_waits_until_the_kernel_was_asked() -> None:
    agent = Agent().start()
    agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, (wire(PREFIX),))])
    agent.round()
    assert agent.kernel.installed.pending == 0
    agent.writer.run()
    assert agent.writer.tracked.addresses == (TrackedAddress(254, octets("10.88.0.1")),)
    assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}


def test_a_route_stays_as_it_is_until_its_new_next_hop_is_known() -> None:
    agent = Agent().start().table(ONE, PREFIX)
    new = BestPathChange(IPV4_UNICAST, ONE, TWO, (wire(PREFIX),))
    agent.kernel.best_paths("main", [new])
    agent.round()
    assert agent.kernel.installed.pending == 0
    assert agent.settle().routes == {PREFIX: hops("10.88.0.2")}


def test_what_was_known_of_a_next_hop_before_the_writer_last_looked_it_up_counts_no_more() -> None:
    """Its network may have come while no route had it."""
    agent = Agent()
    gateway = TrackedAddress(254, octets("10.88.0.2"))
    found, agent.writer.own_routes[gateway] = agent.writer.own_routes[gateway], None
    agent.start().table(ONE, PREFIX)
    other = "198.51.100.0/24"
    agent.change(TWO, other)
    agent.change(NO_PATHS, other, before=TWO)
    agent.kernel.host_changed(NUMBERED)
    agent.settle()
    assert gateway not in agent.writer.tracked.addresses
    agent.writer.own_routes[gateway] = found
    agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, ONE, TWO, (wire(PREFIX),))])
    agent.round()
    assert agent.kernel.installed.pending == 0
    assert agent.settle().routes == {PREFIX: hops("10.88.0.2")}


def test_what_the_writer_reports_of_a_next_hop_that_it_is_to_forget_is_not_known() -> None:
    agent = Agent().start().table(TWO, PREFIX)
    agent.change(ONE, PREFIX, before=TWO)
    agent.kernel.host_changed(NUMBERED)
    agent.settle()
    gateway = TrackedAddress(254, octets("10.88.0.2"))
    agent.writer.report(Resolved((Resolution(gateway, None),)))
    agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, ONE, TWO, (wire(PREFIX),))])
    agent.round()
    assert agent.kernel.installed.pending == 0
    assert agent.settle().routes == {PREFIX: hops("10.88.0.2")}


def test_that_of_another_network_is_the_gateway_of_the_route_there() -> None:
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


def test_another_gateway_is_one_message_for_all_routes_of_the_set() -> None:
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


def test_an_interface_that_is_gone_takes_its_routes_with_it_until_it_is_back() -> None:
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


def test_a_route_stays_as_it_is_until_the_new_interface_of_its_next_hop_is_known() -> None:
    """The writer may know an interface before the agent has read it."""
    agent = Agent().start().table(ONE, PREFIX)
    gateway = TrackedAddress(254, octets("10.88.0.1"))
    new = msgspec.structs.replace(NUMBERED.devices[0], name="eth9", index=9)
    agent.writer.own_routes[gateway] = NETWORKS[254]._replace(next_hops=(NextHop(b"", 9),))
    agent.writer.resolve([gateway])
    assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}
    agent.kernel.host_changed(Host((*NUMBERED.devices, new)))
    assert agent.settle().routes == {PREFIX: hops("10.88.0.1", interface=9)}


def test_next_hops_are_followed_whatever_else_changes_in_the_intent() -> None:
    agent = Agent().start().table(ONE, PREFIX)
    instance = Instance("main", None, 64710, "10.88.0.11", dialect="frr", listen_port=179)
    agent.instances(instance).settle()
    assert agent.writer.tracked.addresses == (TrackedAddress(254, octets("10.88.0.1")),)
