"""Routes of the kernel from an earlier process: they are adopted, or removed after the deferral."""

from __future__ import annotations

import pytest

from reconcilers.kernel.writer.protocol_messages import IPV4, RouteTable, TrackedAddress
from reconcilers.model import Instance
from speaker.api import NO_PATHS, BestPathChange, PathSet
from speaker.nlri import IPV4_UNICAST
from tests.reconcilers.kernel.build import octets, path, paths
from tests.reconcilers.kernel.memory_writer import MemoryWriter
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    BOTH,
    MAIN,
    NUMBERED,
    ONE,
    PREFIX,
    TWO,
    Agent,
    hops,
    many,
    wire,
)


@pytest.fixture
def writer() -> MemoryWriter:
    writer = MemoryWriter()
    writer.kernel = {
        (MAIN, wire(PREFIX)): hops("10.88.0.1"),
        (MAIN, wire("198.51.100.0/24")): hops("10.88.0.1"),
        (RouteTable(254, IPV4, 99), wire(PREFIX)): hops("10.88.0.1"),
    }
    return writer


def test_what_is_right_is_not_written(writer: MemoryWriter) -> None:
    agent = Agent(writer, deferred=True).start().table(ONE, PREFIX, "198.51.100.0/24")
    assert not writer.batches
    assert len(agent.routes) == 2


def test_what_is_stale_is_kept_until_the_deferral_ends(writer: MemoryWriter) -> None:
    agent = Agent(writer, deferred=True).start().table(ONE, PREFIX)
    assert len(agent.routes) == 2
    agent.kernel.end_deferral()
    assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}


def test_what_was_announced_and_is_withdrawn_does_not_wait_for_that(writer: MemoryWriter) -> None:
    """Nor does what no earlier process has installed."""
    agent = Agent(writer, deferred=True).start()
    new = "203.0.113.0/25"
    before = dict(agent.routes)
    announced = next(iter(before))
    agent.change(ONE, announced, new)
    assert set(agent.routes) == {*before, new}
    agent.change(NO_PATHS, announced, new, before=ONE)
    assert set(agent.routes) == before.keys() - {announced}


UNNUMBERED = path(
    "", peer="eth0", address="fe80::1", interface="eth0", link_local=octets("fe80::1")
)


@pytest.mark.parametrize(
    ("announced", "gateway"),
    [(ONE, "10.88.0.1"), (paths(UNNUMBERED), "fe80::1")],
    ids=["numbered", "unnumbered"],
)
def test_what_is_announced_again_stays_until_the_interfaces_of_the_host_are_known(
    writer: MemoryWriter, announced: PathSet, gateway: str
) -> None:
    """Sessions, and the writer's answers, may be there before the first reading of the interfaces."""
    before = hops("10.88.0.1")
    agent = Agent(writer, deferred=True)
    agent.kernel.host_changed(None)
    agent.start().table(announced, PREFIX)
    assert agent.routes[PREFIX] == before
    assert not writer.batches
    agent.kernel.host_changed(NUMBERED)
    assert agent.settle().routes[PREFIX] == hops(gateway)


def test_an_added_next_hop_of_some_routes_is_not_an_unannounced_route(
    writer: MemoryWriter,
) -> None:
    """The writer may find the next hops of a route one after the other."""
    agent = Agent(writer, deferred=True)
    late = TrackedAddress(254, octets("10.88.0.2"))
    found, writer.own_routes[late] = writer.own_routes[late], None
    before = hops("10.88.0.1")
    agent.start().table(BOTH, PREFIX)
    assert agent.routes == {PREFIX: before, "198.51.100.0/24": before}
    writer.own_routes[late] = found
    writer.resolve([late])
    both = hops("10.88.0.1", "10.88.0.2")
    assert agent.settle().routes == {PREFIX: both, "198.51.100.0/24": before}


def test_routes_of_a_lost_peer_that_another_peer_may_announce_stay(writer: MemoryWriter) -> None:
    agent = Agent(writer, deferred=True).start().table(ONE, PREFIX)
    agent.kernel.session_lost("main", "10.88.0.1")
    assert agent.settle().routes == {"198.51.100.0/24": hops("10.88.0.1")}


def test_routes_of_another_metric_go_with_it(writer: MemoryWriter) -> None:
    agent = Agent(writer, deferred=True).start().table(ONE, PREFIX)
    assert agent.of(RouteTable(254, IPV4, 99))
    agent.kernel.end_deferral()
    assert not agent.settle().of(RouteTable(254, IPV4, 99))


def test_what_is_different_is_repaired_at_once(writer: MemoryWriter) -> None:
    agent = Agent(writer, deferred=True).start().table(TWO, PREFIX)
    assert agent.routes[PREFIX] == hops("10.88.0.2")


def test_a_writer_that_is_started_again_is_given_what_it_lacks() -> None:
    agent = Agent().start().table(ONE, *many(10))
    agent.writer.kernel.popitem()
    agent.change(ONE, PREFIX)
    agent.writer.kernel[MAIN, wire("198.51.100.0/24")] = hops("10.88.0.9")
    agent.writer.batches.clear()
    agent.writer.connect()
    assert set(agent.settle().routes) == {*many(10), PREFIX}
    assert len(agent.writer.batches) == 1


def test_what_was_sent_to_a_writer_that_is_lost_is_sent_to_the_next_one() -> None:
    agent = Agent().start().table(TWO, "198.51.100.0/24")
    agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, NO_PATHS, TWO, (wire(PREFIX),))])
    agent.round()
    assert agent.writer.sent
    agent.writer.connect()
    assert set(agent.settle().routes) == {"198.51.100.0/24", PREFIX}


def test_before_the_kernel_is_known_nothing_is_sent() -> None:
    agent = Agent().instances(Instance("main", None, 1, "10.88.0.11", dialect="frr"))
    agent.round()
    agent.table(ONE, PREFIX)
    assert not agent.writer.batches
    assert agent.runner.run(0.0).complete
    agent.writer.connect()
    assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}
