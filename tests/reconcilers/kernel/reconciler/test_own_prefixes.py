"""Prefixes that the node advertises, and that no Loc-RIB has as its own: of Services."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from reconcilers.kernel.instance_routes import InstanceRoutes
from reconcilers.kernel.reasons import Reason as KernelReason
from reconcilers.model import Attributes, Instance, Peer, Route
from speaker.api import NO_PATHS, BestPathChange, PathSet
from speaker.nlri import IPV4_UNICAST, Family, prefix_to_wire
from tests.reconcilers.kernel.build import path, paths
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    MAIN,
    ONE,
    PREFIX,
    RED,
    TWO,
    Agent,
    hops,
    many,
    wire,
)


def advertise(agent: Agent, route_set: str, *prefixes: str) -> None:
    with agent.db.write(agent.intent.routes) as txn:
        agent.intent.routes.delete_all(txn)
        for text in prefixes:
            route = Route(route_set, *prefix_to_wire(text), Attributes(), ())
            agent.intent.routes.upsert(txn, route)
    agent.settle()


def peer(agent: Agent, route_set: str | None) -> None:
    with agent.db.write(agent.intent.peers) as txn:
        row = Peer("main", "10.88.0.1", "10.88.0.1", None, 64701, route_set=route_set)
        agent.intent.peers.upsert(txn, row)
    agent.settle()


def test_a_peers_route_to_one_is_installed_only_while_the_node_does_not_advertise_it() -> None:
    agent = Agent().start().table(ONE, PREFIX, "192.0.2.7/32")
    peer(agent, "services")
    advertise(agent, "services", "192.0.2.7/32")
    assert list(agent.routes) == [PREFIX]
    route = agent.kernel.wanted_tables.route(MAIN, wire("192.0.2.7/32"))
    assert route is not None
    assert route[1].forwarding.why_not == (
        KernelReason.LOCAL,
        "this node advertises the prefix",
    )
    agent.change(TWO, "192.0.2.7/32", PREFIX, before=ONE)
    assert agent.routes == {PREFIX: hops("10.88.0.2")}
    advertise(agent, "services")
    assert sorted(agent.routes) == ["192.0.2.7/32", PREFIX]


def test_a_single_route_is_not_installed_before_the_prefixes_of_the_node_are_known() -> None:
    agent = Agent().start().table(ONE, "198.51.100.0/24")
    peer(agent, "services")
    with agent.db.write(agent.intent.routes) as txn:
        own = Route("services", *prefix_to_wire("192.0.2.7/32"), Attributes(), ())
        agent.intent.routes.upsert(txn, own)
    for prefix, installed in (("192.0.2.7/32", set()), (PREFIX, {PREFIX})):
        items = [BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, (wire(prefix),))]
        agent.kernel.best_paths("main", items, items)
        agent.writer.run()
        assert agent.routes.keys() == {"198.51.100.0/24"} | installed
        agent.settle()
        assert agent.routes.keys() == {"198.51.100.0/24"} | installed


def test_one_prefix_more_of_an_instance_has_no_other_route_judged_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = Agent().start().table(ONE, *many(500))
    peer(agent, "services")
    advertise(agent, "services", *many(100))
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


def test_very_many_prefixes_of_the_node_are_followed_in_slices() -> None:
    agent = Agent().start()
    peer(agent, "services")
    with agent.db.write(agent.intent.routes) as txn:
        for text in many(12_000):
            route = Route("services", *prefix_to_wire(text), Attributes(), ())
            agent.intent.routes.upsert(txn, route)
    slices = agent.kernel.changes(agent.db.snapshot())
    assert sum(1 for _ in slices) >= 3
    own = agent.kernel.wanted_tables.own
    assert sum(1 for _ in own.among("", IPV4_UNICAST, [wire(t) for t in many(12_000)])) == 12_000


def test_the_route_sets_of_the_peers_count() -> None:
    agent = Agent().start().table(ONE, PREFIX)
    advertise(agent, "services", PREFIX)
    assert list(agent.routes) == [PREFIX]
    peer(agent, "services")
    assert not agent.routes
    peer(agent, None)
    assert list(agent.routes) == [PREFIX]


def test_a_route_set_of_another_vrf_has_none() -> None:
    agent = Agent().start()
    agent.instances(Instance("red", "red", 64710, "10.99.0.11", dialect="frr"))
    agent.settle()
    peer(agent, "services")
    advertise(agent, "services", PREFIX)
    agent.table(paths(path("10.99.0.1", instance="red")), PREFIX, instance="red")
    agent.table(ONE, PREFIX)
    assert (list(agent.routes), list(agent.of(RED))) == ([], [PREFIX])
