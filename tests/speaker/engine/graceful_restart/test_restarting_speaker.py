"""RFC 4724 section 4.1: the restarting speaker defers route selection."""

from __future__ import annotations

import pytest

from speaker.api import RouteAttributes
from speaker.capability import GracefulRestartCapability
from speaker.engine.inputs import RemovePeer, ShutDownPeer
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST
from tests.speaker.engine.graceful_restart.hosts import ROUTES, A, B, C, config, crash, pair, revive
from tests.speaker.network import INSTANCE, Host, Network


def opened(host: Host) -> GracefulRestartCapability:
    """The capability in the OPEN of a host's peer."""
    (session,) = (
        peer.connections.primary for peer in host.engine.instance(INSTANCE).peers.values()
    )
    assert session.peer_open is not None
    (found,) = (
        c for c in session.peer_open.capabilities if isinstance(c, GracefulRestartCapability)
    )
    return found


def test_rfc4724_3_the_r_bit_is_set_after_a_restart_and_never_again() -> None:
    network, a, b = pair()
    assert not opened(b).restarting
    crash(network, a)
    network.run(5)
    revive(a, 65001, config("b", B, 65002))
    network.run(20)
    assert opened(b).restarting
    for number in list(a.ends):
        network.cut(a, number)
        a.give_closed(number)
    network.run(60)
    assert b.status().established
    assert not opened(b).restarting


def test_rfc4724_3_the_forwarding_bit_is_set_for_every_family() -> None:
    _, _, b = pair()
    assert opened(b).families == ((IPV4_UNICAST, True), (IPV6_UNICAST, True))
    assert opened(b).notification


def test_rfc4724_4_1_received_routes_are_advertised_after_end_of_rib_of_all_peers() -> None:
    network = Network()
    b = network.host("b", B, 65002)
    a = network.host("a", A, 65001)
    c = network.host("c", C, 65003)
    a.peer(config("b", B, 65002))
    a.routes(ROUTES)
    c.peer(config("b", B, 65002))
    crash(network, b)
    revive(b, 65002, config("a", A, 65001), config("c", C, 65003))
    b.routes({"10.1.0.0/24": RouteAttributes()})
    c.listens = a.listens = True
    network.run(10)
    # Both are up and have sent End-of-RIB, so b has selected and advertised.
    assert set(c.available(IPV4_UNICAST)) == {*ROUTES, "10.1.0.0/24"}


def waiting() -> tuple[Network, Host, Host]:
    """Return a network in which b has restarted and waits for a, which connects, and c."""
    network = Network()
    b, a = network.host("b", B, 65002), network.host("a", A, 65001)
    a.peer(config("b", B, 65002))
    crash(network, b)
    revive(b, 65002, config("a", A, 65001), config("c", C, 65003))
    b.routes({"10.1.0.0/24": RouteAttributes()})
    return network, b, a


def test_rfc4724_4_1_the_deferral_timer_bounds_the_wait_for_a_peer() -> None:
    network, _, a = waiting()
    network.run(119)
    assert a.status().established
    assert a.available(IPV4_UNICAST) == {}
    network.run(2)
    assert set(a.available(IPV4_UNICAST)) == {"10.1.0.0/24"}


def test_rfc4724_4_1_a_peer_that_waits_gets_the_table_after_a_change_of_its_export_rules() -> None:
    network, b, a = waiting()
    network.run(20)
    b.peer(config("a", A, 65001, next_hop_ipv4="10.0.0.9"))
    network.run(20)
    assert a.available(IPV4_UNICAST) == {}
    network.run(81)
    routes = a.available(IPV4_UNICAST)
    assert {prefix: route.next_hop for prefix, route in routes.items()} == {
        "10.1.0.0/24": "10.0.0.9"
    }
    assert a.status().flaps == 0


@pytest.mark.parametrize("removed", [True, False])
def test_rfc4724_4_1_selection_does_not_wait_for_a_peer_that_is_down(*, removed: bool) -> None:
    network, b, a = waiting()
    network.run(20)
    assert a.available(IPV4_UNICAST) == {}
    b.give(RemovePeer(INSTANCE, "c") if removed else ShutDownPeer(INSTANCE, "c", ""))
    network.run(0.5)
    assert set(a.available(IPV4_UNICAST)) == {"10.1.0.0/24"}


def test_a_route_set_is_advertised_at_once_after_a_restart() -> None:
    network = Network()
    b, a = network.host("b", B, 65002), network.host("a", A, 65001)
    a.peer(config("b", B, 65002))
    crash(network, b)
    revive(
        b,
        65002,
        config("a", A, 65001, export="set", route_set="s"),
        config("c", C, 65003),
    )
    b.routes(ROUTES, "s")
    network.run(10)
    assert set(a.available(IPV4_UNICAST)) == set(ROUTES)
