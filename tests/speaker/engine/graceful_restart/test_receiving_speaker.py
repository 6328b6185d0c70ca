"""RFC 4724 and 8538: the receiving speaker keeps the routes of a peer that restarts."""

from __future__ import annotations

from speaker.api import GracefulRestart, InstanceConfig, PeerConfig, RouteAttributes, StateChanged
from speaker.capability import FourOctetAs, GracefulRestartCapability, Multiprotocol
from speaker.engine import Engine
from speaker.engine.inputs import RemovePeer, SetInstance, SetPeer, Shutdown
from speaker.iana import IPV4_UNICAST
from tests.speaker.engine.graceful_restart.hosts import (
    RESTART,
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
from tests.speaker.raw import ATTRIBUTES, FAMILIES, REMOTE, REMOTE_ASN, Raw, open_message, update


def test_rfc4724_4_2_routes_of_a_lost_peer_are_kept_for_its_restart_time() -> None:
    network, a, b = pair()
    crash(network, a)
    network.run(59)
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)
    assert stale(b) == 2
    assert "kept" in b.status().families[0].note
    network.run(2)
    assert b.available(IPV4_UNICAST) == {}


def test_rfc4724_4_2_a_refreshed_route_is_no_change_for_other_peers() -> None:
    network, a, b = pair()
    c = network.host("c", C, 65003)
    c.peer(config("b", B, 65002, graceful_restart=None))
    b.peer(config("c", C, 65003, graceful_restart=None, passive=True))
    network.run(10)
    assert set(c.available(IPV4_UNICAST)) == set(ROUTES)
    seen = c.status().updates_received
    crash(network, a)
    network.run(5)
    revive(a, 65001, config("b", B, 65002))
    a.routes(ROUTES)
    network.run(60)
    assert b.status("a").established
    assert c.status().updates_received == seen
    assert set(c.available(IPV4_UNICAST)) == set(ROUTES)


def test_rfc4724_4_2_end_of_rib_removes_routes_that_are_still_stale() -> None:
    network, a, b = pair()
    crash(network, a)
    network.run(5)
    revive(a, 65001, config("b", B, 65002))
    a.routes({"10.9.0.0/24": RouteAttributes(communities=(7,)), "10.7.0.0/24": RouteAttributes()})
    network.run(20)
    assert set(b.available(IPV4_UNICAST)) == {"10.9.0.0/24", "10.7.0.0/24"}
    assert stale(b) == 0


def test_rfc4724_4_2_routes_are_removed_when_the_forwarding_state_was_lost() -> None:
    network, a, b = pair()
    crash(network, a)
    network.run(5)
    lost = GracefulRestart(restart_time=60, forwarding_preserved=False)
    revive(a, 65001, config("b", B, 65002, graceful_restart=lost))
    before = network.now
    while not b.status().established:
        network.run(0.1)
        assert network.now < before + 20
    assert b.available(IPV4_UNICAST) == {}


def test_rfc4724_4_2_routes_are_removed_when_the_peer_is_back_without_the_capability() -> None:
    network, a, b = pair()
    crash(network, a)
    network.run(5)
    revive(a, 65001, config("b", B, 65002, graceful_restart=None))
    network.run(20)
    assert b.status().established
    assert b.available(IPV4_UNICAST) == {}


def test_rfc4724_4_2_a_second_restart_removes_routes_that_are_stale_already() -> None:
    network, a, b = pair()
    crash(network, a)
    network.run(5)
    # It waits for a third peer, and advertises nothing until then.
    revive(a, 65001, config("b", B, 65002), config("gone", "10.0.0.9", 65009))
    network.run(10)
    assert b.status().established
    assert stale(b) == 2
    crash(network, a)
    network.run(1)
    assert b.available(IPV4_UNICAST) == {}


def test_the_stale_time_ends_a_restart_without_end_of_rib() -> None:
    network, a, b = pair()
    crash(network, a)
    network.run(5)
    a.engine = Engine(network.rng, restarting=True)
    # It waits for a third peer that never comes, with everything it has learnt: no End-of-RIB.
    revive(a, 65001, config("b", B, 65002), config("gone", "10.0.0.9", 65009))
    network.run(25)
    assert b.status().established
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)
    network.run(15)
    assert b.available(IPV4_UNICAST) == {}


def test_rfc4724_5_a_new_connection_replaces_the_old_one_of_a_peer_that_restarted() -> None:
    network, a, b = pair()
    network.run(20)
    # The host a went down so fast that nothing closed its side: b still believes in the session.
    for end in a.ends.values():
        end.open = False
    a.ends.clear()
    a.engine = Engine(network.rng, restarting=True)
    revive(a, 65001, config("b", B, 65002))
    a.routes(ROUTES)
    network.run(20)
    assert b.status().established
    assert b.status().flaps == 1
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)


def test_without_graceful_restart_a_second_connection_is_rejected() -> None:
    network, a, b = pair(graceful_restart=None)
    network.run(20)
    for end in a.ends.values():
        end.open = False
    a.ends.clear()
    a.engine = Engine(network.rng)
    revive(a, 65001, config("b", B, 65002, graceful_restart=None))
    network.run(5)
    assert b.status().flaps == 0


def test_a_cease_removes_the_routes_without_rfc8538() -> None:
    plain = GracefulRestart(restart_time=60, notification=False)
    network, a, b = pair(graceful_restart=plain)
    a.peer(config("b", B, 65002, graceful_restart=plain, hold_time=60, keepalive_time=20))
    network.run(0.5)
    assert b.available(IPV4_UNICAST) == {}


def test_rfc8538_4_a_cease_other_than_hard_reset_keeps_the_routes() -> None:
    network, a, b = pair()
    a.peer(config("b", B, 65002, hold_time=60, keepalive_time=20))
    network.run(0.01)
    assert not b.status().established
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)
    network.run(20)
    assert b.status().established
    assert stale(b) == 0
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)


def test_rfc8538_4_an_expired_hold_timer_keeps_the_routes() -> None:
    network, a, b = pair()
    for end in a.ends.values():
        end.open = False
    a.ends.clear()
    a.engine = Engine(network.rng)
    a.listens = False
    network.run(95)
    assert not b.status().established
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)
    network.run(70)
    assert b.available(IPV4_UNICAST) == {}


def test_rfc8538_3_a_removed_peer_gets_a_hard_reset() -> None:
    network, a, b = pair()
    a.give(RemovePeer(INSTANCE, "b"))
    network.run(1)
    assert b.available(IPV4_UNICAST) == {}
    assert "Hard Reset (Cease / Peer De-configured)" in b.status().reason


def test_the_stale_routes_of_a_removed_peer_are_removed() -> None:
    network, a, b = pair()
    crash(network, a)
    network.run(5)
    b.give(RemovePeer(INSTANCE, "a"))
    assert b.available(IPV4_UNICAST) == {}
    network.run(100)


def test_shutdown_with_graceful_restart_sends_no_notification_and_the_peer_keeps_the_routes() -> (
    None
):
    network, a, b = pair()
    a.writes.clear()
    a.give(Shutdown())
    assert a.sent() == b""
    network.run(5)
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)


def test_a_changed_import_rule_is_applied_to_stale_routes() -> None:
    network, a, b = pair()
    crash(network, a)
    network.run(5)
    b.peer(config("a", A, 65001, passive=True, import_="none"))
    assert b.available(IPV4_UNICAST) == {}
    b.peer(config("a", A, 65001, passive=True))
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)


def test_a_peer_with_another_as_loses_its_stale_routes() -> None:
    """Where any AS is accepted; its paths are judged by its own AS, not by the former one."""
    restart = GracefulRestartCapability(120, families=((IPV4_UNICAST, True),))
    raw = Raw(graceful_restart=RESTART)
    any_as = PeerConfig(
        name="p", address=REMOTE, passive=True, import_="all", graceful_restart=RESTART
    )
    raw.give(SetPeer(INSTANCE, any_as))
    raw.to_established(open_message(capabilities=(*FAMILIES, restart)))
    raw.send(update(ATTRIBUTES, bytes((24, 10, 1, 0)) + bytes((24, 10, 2, 0))))
    raw.drop()
    assert sum(family.stale for family in raw.status.families) == 2
    raw.wait(5)
    other = (Multiprotocol(IPV4_UNICAST), FourOctetAs(REMOTE_ASN + 1), restart)
    raw.to_established(open_message(asn=REMOTE_ASN + 1, capabilities=other))
    assert [family.received for family in raw.status.families] == [0, 0]
    assert sum(family.stale for family in raw.status.families) == 0
    raw.send(update(ATTRIBUTES, bytes((24, 10, 1, 0))))
    assert [family.accepted for family in raw.status.families] == [0, 0]


def test_a_peer_with_another_router_id_loses_its_stale_routes() -> None:
    network, a, b = pair()
    crash(network, a)
    network.run(5)
    a.listens = True
    a.give(SetInstance(InstanceConfig(name=INSTANCE, local_asn=65001, router_id="192.0.2.99")))
    a.peer(config("b", B, 65002, export="none"))
    network.run(20)
    assert b.status().established
    assert b.available(IPV4_UNICAST) == {}


def test_states_are_reported_through_a_restart() -> None:
    network, a, b = pair()
    crash(network, a)
    network.run(2)
    changes = [event for event in b.events if isinstance(event, StateChanged)]
    assert changes[-1].reason


def test_routes_received_has_the_routes_that_are_kept_for_a_peer_that_is_away() -> None:
    network, a, b = pair()
    assert not any(route.kept for route in b.received(IPV4_UNICAST, "a").values())
    crash(network, a)
    network.run(5)
    for peer in ("a", None):
        kept = b.received(IPV4_UNICAST, peer)
        assert kept.keys() == ROUTES.keys()
        assert all(route.kept and route.best and route.used for route in kept.values())
    network.run(60)
    assert b.received(IPV4_UNICAST, "a") == {}
