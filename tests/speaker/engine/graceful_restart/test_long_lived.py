"""RFC 9494: long-lived stale routes are least preferred."""

from __future__ import annotations

from speaker.api import GracefulRestart, RouteAttributes
from speaker.engine.inputs import SetPeer
from speaker.iana import IPV4_UNICAST
from tests.speaker.engine.graceful_restart.hosts import (
    ROUTES,
    A,
    B,
    C,
    config,
    crash,
    pair,
    revive,
    stale,
)
from tests.speaker.network import INSTANCE

LONG = GracefulRestart(restart_time=60, stale_time=30, long_lived_time=3600)


def test_rfc9494_4_2_after_the_restart_time_routes_are_kept_as_least_preferred() -> None:
    network, a, b = pair(graceful_restart=LONG)
    c = network.host("c", C, 65003)
    c.peer(config("b", B, 65002, graceful_restart=LONG))
    b.peer(config("c", C, 65003, graceful_restart=LONG, passive=True))
    c.routes({"10.8.0.0/24": RouteAttributes(med=5)})
    network.run(10)
    crash(network, a)
    network.run(70)
    routes = {
        (r.prefix, r.peer): r for r in b.engine.views.routes_available(INSTANCE, IPV4_UNICAST)
    }
    assert routes["10.8.0.0/24", "c"].best
    assert routes["10.8.0.0/24", "a"].reason == "long-lived stale"
    assert "65535:6" in routes["10.9.0.0/24", "a"].communities
    # c has the capability, and is sent the routes.
    assert "65535:6" in c.available(IPV4_UNICAST)["10.9.0.0/24"].communities
    network.run(3600)
    assert set(b.available(IPV4_UNICAST)) == {"10.8.0.0/24"}
    assert set(c.available(IPV4_UNICAST)) == {"10.8.0.0/24"}


def test_rfc9494_4_3_long_lived_stale_routes_are_not_advertised_without_the_capability() -> None:
    network, a, b = pair(graceful_restart=LONG)
    c = network.host("c", C, 65003)
    c.peer(config("b", B, 65002))
    b.peer(config("c", C, 65003, passive=True))
    network.run(10)
    crash(network, a)
    network.run(50)
    assert set(c.available(IPV4_UNICAST)) == set(ROUTES)
    network.run(20)
    assert c.available(IPV4_UNICAST) == {}


def test_rfc9494_4_2_routes_with_no_llgr_are_removed_after_the_restart_time() -> None:
    network, a, b = pair(graceful_restart=LONG)
    a.routes({"10.7.0.0/24": RouteAttributes(communities=(0xFFFF0007,))})
    network.run(1)
    crash(network, a)
    network.run(70)
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)


def test_rfc9494_a_refreshed_route_has_no_llgr_stale_community() -> None:
    network, a, b = pair(graceful_restart=LONG)
    crash(network, a)
    network.run(70)
    revive(a, 65001, config("b", B, 65002, graceful_restart=LONG))
    a.routes(ROUTES)
    network.run(130)
    assert stale(b) == 0
    assert b.available(IPV4_UNICAST)["10.9.0.0/24"].communities == ("0:7",)


def test_rfc9494_the_shorter_of_both_stale_times_is_used() -> None:
    network, a, b = pair(graceful_restart=LONG)
    short = GracefulRestart(restart_time=60, stale_time=30, long_lived_time=100)
    b.give(SetPeer(INSTANCE, config("a", A, 65001, passive=True, graceful_restart=short)))
    network.run(20)
    crash(network, a)
    network.run(155)
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)
    network.run(10)
    assert b.available(IPV4_UNICAST) == {}
