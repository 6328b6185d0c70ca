"""Routes survive the restart of one end: RFC 4724, RFC 8538, RFC 9494, seen from both sides."""

from __future__ import annotations

import gc
import itertools
import tracemalloc
from collections.abc import Callable, Iterable, Iterator

import pytest

from speaker.api import (
    Fault,
    GracefulRestart,
    InstanceConfig,
    MaximumPrefixes,
    PeerConfig,
    PrefixLimit,
    RouteAttributes,
    StateChanged,
)
from speaker.attribute import encode_attribute
from speaker.capability import (
    EnhancedRouteRefresh,
    FourOctetAs,
    GracefulRestartCapability,
    Multiprotocol,
    RouteRefreshCapability,
)
from speaker.engine import Engine
from speaker.engine.inputs import (
    BytesReceived,
    RemovePeer,
    SetInstance,
    SetPeer,
    Shutdown,
    ShutDownPeer,
)
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, AttributeType
from speaker.message import KEEPALIVE, RefreshKind, RouteRefresh
from tests.speaker.network import INSTANCE, Host, Network
from tests.speaker.raw import (
    ATTRIBUTES,
    FAMILIES,
    REMOTE,
    REMOTE_ASN,
    Raw,
    open_message,
    update,
)

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"
ROUTES = {"10.8.0.0/24": RouteAttributes(), "10.9.0.0/24": RouteAttributes(communities=(7,))}
RESTART = GracefulRestart(restart_time=60, stale_time=30)


def config(name: str, address: str, asn: int, **changes: object) -> PeerConfig:
    """An open peer with graceful restart."""
    values: dict[str, object] = {
        "graceful_restart": RESTART,
        "import_": "all",
        "export": "all",
        **changes,
    }
    return PeerConfig(name=name, address=address, peer_asn=asn, **values)  # type: ignore[arg-type]


def pair(**changes: object) -> tuple[Network, Host, Host]:
    """The restarting speaker a, with routes, and its helper b."""
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65002)
    a.peer(config("b", B, 65002, **changes))
    b.peer(config("a", A, 65001, passive=True, **changes))
    a.routes(ROUTES)
    network.run(10)
    assert b.status().established
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)
    return network, a, b


def crash(network: Network, host: Host) -> None:
    """The process is gone: connections end without a word."""
    network.hosts[host.address].listens = False
    for number in list(host.ends):
        network.cut(host, number)
    host.engine = Engine(network.rng, restarting=True)


def revive(host: Host, asn: int, *peers: PeerConfig) -> None:
    """It starts again and is configured."""
    host.listens = True
    host.give(SetInstance(InstanceConfig(name=INSTANCE, local_asn=asn, router_id=host.address)))
    for peer in peers:
        host.peer(peer)


def stale(host: Host) -> int:
    """How many routes are kept stale, by the peer's status."""
    return sum(family.stale for family in host.status().families)


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


# ------------------------------------------------------------ the restarting speaker


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


# ------------------------------------------------------------------- RFC 9494

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
    routes = {(r.prefix, r.peer): r for r in b.engine.routes_available(INSTANCE, IPV4_UNICAST)}
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


# --------------------------------------------------------------------- refresh


def writes_to_end(host: Host) -> bytes:
    """All octets that were written."""
    return b"".join(b"".join(w.parts) for w in host.writes)


def test_rfc7313_4_a_refresh_is_delimited_by_borr_and_eorr() -> None:
    network, a, b = pair()
    a.writes.clear()
    b.refresh("a")
    network.run(1)
    octets = writes_to_end(a)
    begin = bytes.fromhex("00170500010101")
    end = bytes.fromhex("00170500010201")
    assert begin in octets
    assert end in octets
    assert octets.index(begin) < octets.index(bytes.fromhex("180a08")) < octets.index(end)
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)


def test_rfc7313_4_routes_that_are_not_advertised_before_eorr_are_removed() -> None:
    _, _, b = pair()
    adj_in = next(iter(b.engine.instance(INSTANCE).established.values())).adj_in
    number = next(iter(b.ends))
    marker = b"\xff" * 16
    begin = marker + bytes.fromhex("00170500010101")
    end = marker + bytes.fromhex("00170500010201")
    b.give(BytesReceived(number, begin))
    assert adj_in.stale(IPV4_UNICAST) == 2
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)
    b.give(BytesReceived(number, end))
    assert b.available(IPV4_UNICAST) == {}


def test_rfc7313_4_a_refresh_without_eorr_ends_after_its_time() -> None:
    network, _, b = pair()
    number = next(iter(b.ends))
    b.give(BytesReceived(number, b"\xff" * 16 + bytes.fromhex("00170500010101")))
    network.run(29)
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)
    network.run(2)
    assert b.available(IPV4_UNICAST) == {}
    assert b.status().established


def test_states_are_reported_through_a_restart() -> None:
    network, a, b = pair()
    crash(network, a)
    network.run(2)
    changes = [event for event in b.events if isinstance(event, StateChanged)]
    assert changes[-1].reason


def restarting(limit: int) -> Raw:
    """A peer with two routes that has restarted; ``limit`` is how many it may send."""
    opened = open_message(
        capabilities=(
            *FAMILIES,
            RouteRefreshCapability(),
            EnhancedRouteRefresh(),
            GracefulRestartCapability(
                restart_time=60, families=((IPV4_UNICAST, True), (IPV6_UNICAST, True))
            ),
        )
    )
    raw = Raw(graceful_restart=RESTART, maximum_prefixes=(MaximumPrefixes(limit),))
    raw.to_established(opened)
    raw.send(update(ATTRIBUTES, bytes((24, 10, 1, 1)) + bytes((24, 10, 1, 2))))
    raw.drop()
    raw.wait(5)
    return raw.to_established(opened)


def test_a_limit_does_not_count_the_routes_of_the_last_session() -> None:
    raw = restarting(limit=3)
    raw.send(update(ATTRIBUTES, bytes((24, 10, 2, 1)) + bytes((24, 10, 2, 2))))
    assert raw.state == "Established"
    assert not [event for event in raw.events if isinstance(event, PrefixLimit)]
    raw.send(update(ATTRIBUTES, bytes((24, 10, 2, 3)) + bytes((24, 10, 2, 4))))
    assert raw.state == "Idle"
    assert raw.notification == (6, 1, bytes.fromhex("00010100000003"))


def test_a_limit_counts_the_routes_before_a_refresh() -> None:
    """A peer may begin any number of refreshes, and end none: its routes would be without number."""
    raw = restarting(limit=3)
    raw.send(update(ATTRIBUTES, bytes((24, 10, 2, 1)) + bytes((24, 10, 2, 2))))
    raw.send(update(b""))
    raw.send(RouteRefresh(IPV4_UNICAST, RefreshKind.BEGIN).encode())
    raw.send(update(ATTRIBUTES, bytes((24, 10, 2, 1)) + bytes((24, 10, 3, 1))))
    assert raw.state == "Established"
    raw.send(RouteRefresh(IPV4_UNICAST, RefreshKind.BEGIN).encode())
    raw.send(update(ATTRIBUTES, bytes((24, 10, 4, 1))))
    assert raw.state == "Idle"


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


def restarts(
    number: int, meds: Callable[[int], Iterable[int]], **settings: object
) -> Iterator[Raw]:
    """Yield a peer that restarts, each time when it has announced its table and End-of-RIB.

    ``meds`` returns the MED of each prefix after a number of restarts.
    """
    opened = open_message(
        capabilities=(
            *FAMILIES,
            GracefulRestartCapability(restart_time=60, families=((IPV4_UNICAST, True),)),
        )
    )
    raw = Raw(graceful_restart=RESTART, **settings).to_established(opened)
    for restart in range(number):
        for prefix, med in enumerate(meds(restart)):
            value = med.to_bytes(4, "big")
            attribute = encode_attribute(0x80, AttributeType.MULTI_EXIT_DISC, value)
            raw.send(update(ATTRIBUTES + attribute, bytes((24, 10, 1, prefix))))
        raw.send(update(b""))
        yield raw
        raw.wait(31)  # a stable session, after which the next one may begin at once
        raw.drop()
        raw.wait(2)
        raw.to_established(opened)
        raw.events.clear()


def test_the_memory_of_a_peer_that_restarts_again_and_again_is_level() -> None:
    sizes: list[int] = []
    tracemalloc.start()
    try:
        for number, _ in enumerate(restarts(240, lambda _: range(4))):
            if number % 80 == 79:
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[2] < sizes[1] + 8_000, sizes


def test_the_attributes_of_former_sessions_are_released() -> None:
    """In each session half of 200 routes have other attributes than in all sessions before."""

    def meds(restart: int) -> Iterable[int]:
        return itertools.chain(range(100), range(100 * (restart + 1), 100 * (restart + 2)))

    sets = 0
    for raw in restarts(60, meds, import_="none", keep_received=50):
        (established,) = raw.engine.instance(INSTANCE).established.values()
        sets = max(sets, len(established.inbound.cache.by_field))
    # Of 6,000 the cache has room for half.
    assert 200 < sets < 4000


def test_a_limit_counts_the_routes_after_end_of_rib() -> None:
    """RFC 4724 section 4.2: at End-of-RIB the stale routes are removed, before prefixes are counted."""
    restart = GracefulRestart(restart_time=4000, stale_time=300)
    opened = open_message(
        capabilities=(
            *FAMILIES,
            GracefulRestartCapability(restart_time=4000, families=((IPV4_UNICAST, True),)),
        )
    )
    raw = Raw(graceful_restart=restart).to_established(opened)
    raw.send(update(ATTRIBUTES, b"".join(bytes((24, 10, 2, n)) for n in range(10))))
    raw.drop()
    limited = PeerConfig(
        name="p", address=REMOTE, peer_asn=REMOTE_ASN, passive=True, import_="all",
        graceful_restart=restart, maximum_prefixes=(MaximumPrefixes(5),),
    )  # fmt: skip
    raw.give(SetPeer(INSTANCE, limited))
    raw.wait(200)
    raw.connect()
    raw.send(opened)
    raw.send(KEEPALIVE)
    raw.events.clear()
    raw.send(update(b""))
    assert raw.state == "Established"
    assert not [event for event in raw.events if isinstance(event, Fault | PrefixLimit)]
    assert [family.received for family in raw.status.families] == [0, 0]
