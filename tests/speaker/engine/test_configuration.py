"""The configuration that an engine holds, read back: instances, peers, route sets."""

from __future__ import annotations

import random

import pytest

from speaker.api import DynamicPeerConfig, InstanceConfig, PeerConfig, RouteAttributes
from speaker.engine import Engine
from speaker.engine.configuration import ConfigurationReads
from speaker.engine.inputs import (
    RemovePeer,
    RemoveRouteSet,
    SetInstance,
    SetPeer,
    TransportAccepted,
    UpdateRoutes,
)
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, prefix_to_wire

CONFIG = InstanceConfig(name="i", local_asn=65001, router_id="192.0.2.1")
PEER = PeerConfig(name="p", address="192.0.2.9", peer_asn=65002, route_set="s")
DYNAMIC = DynamicPeerConfig(name="d", prefix="198.51.100.0/24")
FOUR, SIX = prefix_to_wire("10.1.0.0/16")[1], prefix_to_wire("fd00::/64")[1]


@pytest.fixture
def engine() -> Engine:
    engine = Engine(random.Random(1))  # noqa: S311  a seed, no secret
    for item in (SetInstance(CONFIG), SetPeer("i", PEER), SetPeer("i", DYNAMIC)):
        engine.handle(item, 0.0)
    return engine


@pytest.fixture
def reads(engine: Engine) -> ConfigurationReads:
    return ConfigurationReads(engine)


def test_instances_and_peers_are_read_back(reads: ConfigurationReads) -> None:
    assert reads.instance_configs() == {"i": CONFIG}
    assert reads.instance_config("i") == CONFIG
    assert reads.peer_configs("i") == {"p": PEER, "d": DYNAMIC}
    assert reads.peer_config("i", "p") == PEER
    assert reads.peer_config("i", "d") == DYNAMIC


def test_a_removed_peer_has_no_configuration(engine: Engine, reads: ConfigurationReads) -> None:
    engine.handle(RemovePeer("i", "p"), 1.0)
    assert reads.peer_config("i", "p") is None
    assert reads.peer_configs("i") == {"d": DYNAMIC}


def test_dynamic_peers_are_not_read_back_as_configuration(
    engine: Engine, reads: ConfigurationReads
) -> None:
    remote = ("198.51.100.7", 40000)
    engine.handle(TransportAccepted(1, "i", ("192.0.2.1", 179), remote), 1.0)
    assert [status.name for status in engine.views.peers(1.0)] == ["198.51.100.7", "p"]
    assert set(reads.peer_configs("i")) == {"p", "d"}
    assert reads.peer_config("i", "198.51.100.7") is None


def test_an_unknown_instance_reads_back_as_none(reads: ConfigurationReads) -> None:
    assert reads.instance_config("j") is None
    assert reads.peer_configs("j") == {}
    assert reads.peer_config("j", "p") is None
    assert reads.route_sets("j") == ()
    assert reads.route_set_prefixes("j", "s") is None
    assert reads.routes_of_set("j", "s", {}) is None


def test_routes_of_a_set_are_read_by_prefix(engine: Engine, reads: ConfigurationReads) -> None:
    four = RouteAttributes(origin=2, communities=(7,), local_preference=200)
    six = RouteAttributes(next_hop="fd00::1", large_communities=((1, 2, 3),))
    changes = {IPV4_UNICAST: {FOUR: four}, IPV6_UNICAST: {SIX: six}}
    engine.handle(UpdateRoutes("i", "s", changes), 1.0)
    assert list(reads.route_sets("i")) == ["s"]
    assert reads.route_set_prefixes("i", "s") == {IPV4_UNICAST: (FOUR,), IPV6_UNICAST: (SIX,)}
    absent = prefix_to_wire("10.9.0.0/16")[1]
    wanted = {IPV4_UNICAST: [FOUR, absent], IPV6_UNICAST: [SIX]}
    assert reads.routes_of_set("i", "s", wanted) == {
        IPV4_UNICAST: {FOUR: four, absent: None},
        IPV6_UNICAST: {SIX: six},
    }
    engine.handle(RemoveRouteSet("i", "s"), 2.0)
    assert reads.routes_of_set("i", "s", wanted) is None
    assert reads.route_set_prefixes("i", "s") is None


def test_repeated_communities_are_read_back_once(engine: Engine, reads: ConfigurationReads) -> None:
    repeated = RouteAttributes(communities=(7, 8, 7))
    engine.handle(UpdateRoutes("i", "s", {IPV4_UNICAST: {FOUR: repeated}}), 1.0)
    assert reads.routes_of_set("i", "s", {IPV4_UNICAST: [FOUR]}) == {
        IPV4_UNICAST: {FOUR: RouteAttributes(communities=(7, 8))}
    }
