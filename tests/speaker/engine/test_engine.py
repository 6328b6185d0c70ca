"""Two or three engines on a simulated network: sessions are established, exchange routes, and end."""

from __future__ import annotations

import msgspec
import pytest

from speaker.api import (
    ConnectionsRefused,
    DynamicPeerConfig,
    GracefulRestart,
    InstanceConfig,
    PeerConfig,
    PrefixRule,
    RouteAttributes,
    SessionError,
    StateChanged,
    UnknownName,
)
from speaker.engine.export_rules import next_hop
from speaker.engine.inputs import (
    AdvertiseAgain,
    RemoveInstance,
    RemovePeer,
    RemoveRouteSet,
    SetInstance,
    SetPeer,
    Shutdown,
    TransportAccepted,
)
from speaker.negotiated import Negotiated
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST
from tests.speaker.network import INSTANCE, Host, Network

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"


def pair(
    network: Network, asn_a: int = 65001, asn_b: int = 65002, **settings: object
) -> tuple[Host, Host]:
    """Two routers that know each other; only the first connects."""
    a, b = network.host("a", A, asn_a, listens=False), network.host("b", B, asn_b)
    options: dict[str, object] = {"import_": "all", "export": "all", **settings}
    b.peer(PeerConfig(name="a", address=A, peer_asn=asn_a, passive=True, **options))  # type: ignore[arg-type]
    a.peer(PeerConfig(name="b", address=B, peer_asn=asn_b, **options))  # type: ignore[arg-type]
    return a, b


def test_a_session_is_established_with_negotiated_timers() -> None:
    network = Network()
    a, b = pair(network)
    b.peer(
        PeerConfig(name="a", address=A, peer_asn=65001, passive=True, hold_time=9, keepalive_time=3)
    )
    network.run(2)
    assert a.status().established
    assert b.status().established
    assert (a.status().hold_time, a.status().keepalive_time) == (9, 3)
    assert a.status().reason == ""
    assert a.status().peer_router_id == B


def test_an_idle_session_stays_up_for_hours() -> None:
    network = Network()
    a, b = pair(network, hold_time=9, keepalive_time=3)
    network.run(2 * 3600)
    assert a.status().established
    assert a.status().flaps == b.status().flaps == 0
    # A keepalive every 2.25 to 3 s (RFC 4271 section 10), and no more than that.
    assert 2400 <= a.status().messages_sent <= 3210


def test_a_hold_time_of_zero_means_no_keepalives() -> None:
    network = Network()
    a, _ = pair(network, hold_time=0, keepalive_time=0)
    network.run(3600)
    assert a.status().established
    assert a.status().messages_sent < 10


def test_the_hold_timer_ends_the_session_of_a_silent_peer() -> None:
    network = Network()
    a, b = pair(network, hold_time=9, keepalive_time=3)
    network.run(1)
    for host in (a, b):
        for end in list(host.ends.values()):
            end.open = False
    b.listens = False
    network.run(10)
    assert "hold timer expired" in a.status().reason
    assert a.status().last_error == "sent: Hold Timer Expired"
    assert a.status().flaps == 1


def test_ebgp_prepends_the_own_as_and_keeps_the_local_preference_to_itself() -> None:
    network = Network()
    a, b = pair(network)
    a.routes({"10.1.0.0/16": RouteAttributes(local_preference=200, communities=(65001 << 16 | 1,))})
    network.run(1)
    route = b.received(IPV4_UNICAST)["10.1.0.0/16"]
    assert (route.as_path, route.local_preference, route.next_hop) == ("65001", None, A)
    assert route.communities == ("65001:1",)


def test_ibgp_keeps_the_path_empty_and_sends_the_local_preference() -> None:
    network = Network()
    a, b = pair(network, 65001, 65001)
    a.routes(
        {"10.1.0.0/16": RouteAttributes(local_preference=200), "10.2.0.0/16": RouteAttributes()}
    )
    network.run(1)
    routes = b.received(IPV4_UNICAST)
    assert [routes[p].as_path for p in sorted(routes)] == ["", ""]
    assert [routes[p].local_preference for p in sorted(routes)] == [200, 100]


def test_a_local_as_of_the_peer_replaces_the_instances() -> None:
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65002, listens=False)
    a.peer(PeerConfig(name="b", address=B, peer_asn=65002, local_asn=64999, export="all"))
    b.peer(PeerConfig(name="a", address=A, peer_asn=64999, import_="all"))
    a.routes({"10.1.0.0/16": RouteAttributes()})
    network.run(2)
    assert b.received(IPV4_UNICAST)["10.1.0.0/16"].as_path == "64999"


def test_ipv6_prefixes_over_an_ipv4_session_have_the_mapped_next_hop() -> None:
    network = Network()
    a, b = pair(network)
    a.routes({"fd00::/64": RouteAttributes()})
    network.run(1)
    next_hop = b.received(IPV6_UNICAST)["fd00::/64"].next_hop
    assert next_hop in ("::ffff:10.0.0.1", "::ffff:a00:1")


def test_a_configured_ipv6_next_hop_is_used_over_an_ipv4_session() -> None:
    network = Network()
    a, b = pair(network, next_hop_ipv6="fd00::1")
    a.routes({"fd00:1::/64": RouteAttributes()})
    network.run(1)
    assert b.received(IPV6_UNICAST)["fd00:1::/64"].next_hop == "fd00::1"


def test_ipv4_prefixes_over_an_ipv6_session_have_its_address_as_next_hop() -> None:
    network = Network()
    a, b = network.host("a", "fd00::1", 65001), network.host("b", "fd00::2", 65002)
    a.peer(PeerConfig(name="b", address="fd00::2", peer_asn=65002, route_set="s"))
    b.peer(PeerConfig(name="a", address="fd00::1", peer_asn=65001, passive=True, import_="all"))
    a.routes({"172.16.1.1/32": RouteAttributes(), "fd00:aa::1/128": RouteAttributes()}, "s")
    network.run(1)
    assert b.received(IPV4_UNICAST)["172.16.1.1/32"].next_hop == "fd00::1"
    assert b.received(IPV6_UNICAST)["fd00:aa::1/128"].next_hop == "fd00::1"
    a.routes({"172.16.1.1/32": None}, "s")
    network.run(1)
    assert not b.received(IPV4_UNICAST)


def test_routes_of_ibgp_peers_are_not_advertised_to_other_ibgp_peers() -> None:
    network = Network()
    middle = network.host("m", A, 65001)
    left, right = network.host("l", B, 65001), network.host("r", C, 65001)
    outside = network.host("o", "10.0.0.4", 65004)
    for host, asn in ((left, 65001), (right, 65001), (outside, 65004)):
        host.peer(PeerConfig(name="m", address=A, peer_asn=65001, import_="all", export="all"))
        middle.peer(
            PeerConfig(
                name=host.name,
                address=host.address,
                peer_asn=asn,
                passive=True,
                import_="all",
                export="all",
            )
        )
    left.routes({"10.1.0.0/16": RouteAttributes()})
    outside.routes({"10.4.0.0/16": RouteAttributes()})
    network.run(3)
    assert set(right.received(IPV4_UNICAST)) == {"10.4.0.0/16"}
    assert set(outside.received(IPV4_UNICAST)) == {"10.1.0.0/16"}
    assert outside.received(IPV4_UNICAST)["10.1.0.0/16"].as_path == "65001"
    # A third party's next hop stays within the AS (RFC 4271 section 5.1.3).
    assert right.received(IPV4_UNICAST)["10.4.0.0/16"].next_hop == "10.0.0.4"


def test_a_route_with_the_own_as_is_held_but_not_used() -> None:
    network = Network()
    a, b = pair(network, 65001, 65002)
    c = network.host("c", C, 65001)
    c.peer(PeerConfig(name="b", address=B, peer_asn=65002, import_="all", export="all"))
    b.peer(
        PeerConfig(name="c", address=C, peer_asn=65001, passive=True, import_="all", export="all")
    )
    a.routes({"10.1.0.0/16": RouteAttributes()})
    network.run(3)
    route = c.received(IPV4_UNICAST)["10.1.0.0/16"]
    assert (route.best, route.reason) == (False, "own AS in the AS path")
    assert not c.available(IPV4_UNICAST)
    assert c.status().families[0].received == 1


def test_with_allowas_in_origin_a_route_of_the_own_as_is_used() -> None:
    """Of another router of the AS, behind an external peer: not a route that only passes through it."""
    network = Network()
    a, b = pair(network, 65001, 65002)
    c = network.host("c", C, 65001)
    allowed = PeerConfig(
        name="b", address=B, peer_asn=65002, import_="all", export="all", allowas_in_origin=True
    )
    c.peer(allowed)
    b.peer(
        PeerConfig(name="c", address=C, peer_asn=65001, passive=True, import_="all", export="all")
    )
    beyond = network.host("d", "10.0.0.4", 65009)
    beyond.peer(PeerConfig(name="a", address=A, peer_asn=65001, passive=True, export="all"))
    a.peer(PeerConfig(name="d", address="10.0.0.4", peer_asn=65009, import_="all"))
    a.routes({"10.1.0.0/16": RouteAttributes()})
    beyond.routes({"10.2.0.0/16": RouteAttributes()})
    network.run(30)
    found = c.received(IPV4_UNICAST)
    assert (found["10.1.0.0/16"].as_path, found["10.1.0.0/16"].best) == ("65002 65001", True)
    passed = found["10.2.0.0/16"]
    assert (passed.best, passed.reason) == (False, "own AS in the AS path")
    c.peer(msgspec.structs.replace(allowed, allowas_in_origin=False))
    network.run(30)
    assert c.received(IPV4_UNICAST)["10.1.0.0/16"].reason == "own AS in the AS path"
    assert c.status().families[0].accepted == 0


def test_without_import_routes_are_counted_and_visible_but_not_used() -> None:
    network = Network()
    a, b = pair(network, import_="none")
    a.routes({"10.1.0.0/16": RouteAttributes()})
    network.run(1)
    assert b.received(IPV4_UNICAST)["10.1.0.0/16"].reason == "not accepted by the import policy"
    assert not b.available(IPV4_UNICAST)
    family = b.status().families[0]
    assert (family.received, family.accepted) == (1, 0)


def test_an_import_rule_accepts_covered_prefixes_and_changes_without_a_reset() -> None:
    network = Network()
    a, b = pair(network, import_=(PrefixRule("10.0.0.0/8", ge=16, le=24),))
    a.routes(
        {
            "10.1.0.0/16": RouteAttributes(),
            "10.1.0.0/25": RouteAttributes(),
            "192.0.2.0/24": RouteAttributes(),
        }
    )
    network.run(1)
    assert set(b.available(IPV4_UNICAST)) == {"10.1.0.0/16"}
    b.peer(
        PeerConfig(
            name="a",
            address=A,
            peer_asn=65001,
            passive=True,
            export="all",
            import_=(PrefixRule("0.0.0.0/0", le=24),),
        )
    )
    network.run(1)
    assert set(b.available(IPV4_UNICAST)) == {"10.1.0.0/16", "192.0.2.0/24"}
    assert b.status().flaps == 0


def test_the_table_is_advertised_before_end_of_rib() -> None:
    network = Network()
    a, b = pair(network)
    a.routes({f"10.{n}.0.0/16": RouteAttributes() for n in range(200)})
    network.run(1)
    assert len(b.available(IPV4_UNICAST)) == 200
    octets = a.sent()
    end_of_rib = bytes.fromhex("ff" * 16 + "001702" + "00000000")
    assert octets.count(end_of_rib) == 1
    assert octets.index(end_of_rib) > octets.rindex(bytes((16, 10, 199)))


def test_h47_an_update_right_behind_the_keepalive_is_decoded_as_negotiated() -> None:
    network = Network()
    a, b = pair(network, 4200000001, 65002)
    a.routes({"10.1.0.0/16": RouteAttributes()})
    network.run(1)
    assert b.received(IPV4_UNICAST)["10.1.0.0/16"].as_path == "4200000001"


def test_one_failing_peer_never_touches_another() -> None:
    network = Network()
    _, b = pair(network)
    c = network.host("c", C, 65003)
    b.peer(PeerConfig(name="c", address=C, peer_asn=65099))
    c.peer(PeerConfig(name="b", address=B, peer_asn=65002, passive=True))
    network.run(60)
    assert b.status("a").established
    assert b.status("a").flaps == 0
    assert not b.status("c").established
    assert "peer AS 65003, expected 65099" in b.status("c").reason


def test_peer_as_zero_accepts_any_as() -> None:
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 4200000002, listens=False)
    a.peer(PeerConfig(name="b", address=B, peer_asn=0, passive=True))
    b.peer(PeerConfig(name="a", address=A, peer_asn=65001))
    network.run(1)
    assert a.status().peer_asn == 4200000002


def test_a_refused_connection_is_retried_with_the_reason_in_the_status() -> None:
    network = Network()
    a, b = pair(network)
    b.listens = False
    network.run(5)
    status = a.status()
    assert status.state == "Active"
    assert status.reason == "connection refused"
    assert status.retry_in is not None
    b.listens = True
    network.run(20)
    assert a.status().established
    assert a.status().reason == ""


def test_rfc8950_4_without_the_capability_ipv4_routes_have_no_ipv6_next_hop() -> None:
    own, config = b"\xfd" + bytes(14) + b"\1", PeerConfig(name="b", address="fd00::2")
    without = Negotiated(families=frozenset({IPV4_UNICAST}))
    assert next_hop(IPV4_UNICAST, own, config, without) == b""
    capable = Negotiated(extended_next_hop=frozenset({IPV4_UNICAST}))
    assert next_hop(IPV4_UNICAST, own, config, capable) == own


def test_rfc2918_4_a_route_refresh_is_answered_by_the_whole_table() -> None:
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65002)
    a.peer(PeerConfig(name="b", address=B, peer_asn=65002, export="all"))
    b.peer(PeerConfig(name="a", address=A, peer_asn=65001, passive=True, import_="all"))
    a.routes({"10.1.0.0/16": RouteAttributes(), "10.2.0.0/16": RouteAttributes(med=1)})
    network.run(5)
    before = b.status().updates_received
    network.run(5)
    assert b.status().updates_received == before
    b.refresh("a")
    network.run(1)
    # Two attribute sets are two UPDATEs, and End-of-RIB is none of the answer's.
    assert b.status().updates_received >= before + 2
    before = b.status().updates_received
    a.give(AdvertiseAgain(INSTANCE, "b"))
    network.run(1)
    assert b.status().updates_received >= before + 2
    assert b.status().flaps == 0
    assert set(b.received(IPV4_UNICAST)) == {"10.1.0.0/16", "10.2.0.0/16"}


def test_connection_attempts_back_off_to_the_configured_time() -> None:
    network = Network()
    a, b = pair(network, connect_retry_time=30)
    b.listens = False
    network.run(600)
    assert 15 <= len(a.connects) <= 40
    a.connects.clear()
    network.run(300)
    assert 9 <= len(a.connects) <= 14


def test_a_passive_peer_never_connects() -> None:
    network = Network()
    a = network.host("a", A, 65001)
    a.peer(PeerConfig(name="b", address=B, peer_asn=65002, passive=True))
    network.run(600)
    assert a.connects == []
    assert a.status().reason == "waiting for the peer to connect"


def test_a_disabled_peer_stays_down_with_its_reason() -> None:
    network = Network()
    a, b = pair(network, disabled_reason="the Secret bgp-auth is missing")
    network.run(60)
    assert a.connects == []
    assert a.status().reason == "the Secret bgp-auth is missing"
    enabled = PeerConfig(name="b", address=B, peer_asn=65002)
    a.peer(enabled)
    b.peer(PeerConfig(name="a", address=A, peer_asn=65001, passive=True))
    network.run(5)
    assert a.status().established


def test_disabling_a_peer_ends_its_session_with_a_cease() -> None:
    network = Network()
    a, b = pair(network)
    network.run(1)
    a.peer(PeerConfig(name="b", address=B, peer_asn=65002, disabled_reason="the Secret is missing"))
    network.run(30)
    assert a.status().reason == "the Secret is missing"
    assert b.status().last_error == "received: Cease / Administrative Shutdown"


@pytest.mark.parametrize("command", ["peer", "instance"])
def test_f53_a_peer_that_is_removed_while_connecting_leaves_no_connection(command: str) -> None:
    network = Network(latency=(1.0, 1.0))
    a, b = pair(network)
    network.run(0.5)
    assert a.status().state == "Connect"
    a.give(RemovePeer(INSTANCE, "b") if command == "peer" else RemoveInstance(INSTANCE))
    network.run(30)
    assert list(a.engine.views.peers(network.now)) == []
    assert not b.status().established
    assert a.ends == {}
    assert a.engine.next_deadline() is None


def test_removing_an_established_peer_sends_a_cease_and_removes_its_routes() -> None:
    network = Network()
    a, b = pair(network)
    b.routes({"10.2.0.0/16": RouteAttributes()})
    network.run(1)
    assert a.available(IPV4_UNICAST)
    a.give(RemovePeer(INSTANCE, "b"))
    network.run(0.1)
    assert not a.available(IPV4_UNICAST)
    assert b.status().last_error == "received: Cease / Peer De-configured"


def test_shutdown_sends_a_cease_except_with_graceful_restart() -> None:
    network = Network()
    a, b = pair(network)
    network.run(1)
    a.give(Shutdown("maintenance"))
    network.run(0.1)
    assert b.status().last_error == "received: Cease / Administrative Shutdown: 'maintenance'"
    network = Network()
    a, b = pair(network, graceful_restart=GracefulRestart(60))
    network.run(1)
    a.give(Shutdown())
    network.run(0.1)
    assert b.status().last_error == "connection lost: closed by the peer"


def test_dynamic_peers_are_accepted_up_to_the_limit_and_removed_with_the_session() -> None:
    network = Network()
    a = network.host("a", A, 65000)
    a.peer(DynamicPeerConfig(name="racks", prefix="10.0.0.0/24", limit=2, import_="all"))
    hosts = [network.host(f"h{n}", f"10.0.0.{n}", 65000 + n) for n in (11, 12, 13)]
    stranger = network.host("s", "10.9.0.1", 65009)
    for host in (*hosts, stranger):
        host.peer(PeerConfig(name="a", address=A, peer_asn=65000, export="all"))
    network.run(5)
    assert len(list(a.engine.views.peers(network.now))) == 2
    assert not stranger.status().established
    # RFC 4486: the peer beyond the limit gets a Cease; an unknown address gets nothing.
    refused = next(host for host in hosts if not host.status().established)
    assert "Connection Rejected" in refused.status().reason
    assert "Connection Rejected" not in stranger.status().reason
    up = next(host for host in hosts if host.status().established)
    up.give(RemovePeer(INSTANCE, "a"))
    network.run(300)
    names = {status.name for status in a.engine.views.peers(network.now)}
    assert up.address not in names
    assert len(names) == 2


def test_of_two_peers_with_one_address_the_one_without_session_is_chosen() -> None:
    network = Network()
    a = network.host("a", A, 65001)
    for name in ("one", "two"):
        a.peer(PeerConfig(name=name, address=B, peer_asn=65002, passive=True))
    b = network.host("b", B, 65002)
    b.peer(PeerConfig(name="a1", address=A, peer_asn=65001))
    b.peer(PeerConfig(name="a2", address=A, peer_asn=65001, port=1179))
    network.run(5)
    assert a.status("one").established
    assert a.status("two").established
    a.give(RemovePeer(INSTANCE, "two"))
    network.run(0.5)
    assert a.status("one").established


def test_h01_a_connection_from_an_unknown_address_is_closed_before_a_byte_is_read() -> None:
    network = Network()
    a = network.host("a", A, 65001)
    b = network.host("b", B, 65002)
    b.peer(PeerConfig(name="a", address=A, peer_asn=65001))
    network.run(59)
    assert a.writes == []
    assert not b.status().established
    # All are counted; one a minute is reported, from any address.
    (event,) = a.events
    assert event == ConnectionsRefused(
        instance=INSTANCE, address=B, reason="no peer has this address", count=1
    )
    (status,) = a.engine.views.instances()
    assert status.refused > 3
    network.run(241)
    assert 2 <= len(a.events) <= 5


def test_a_dynamic_peer_beyond_the_limit_is_counted_and_gets_a_cease() -> None:
    network = Network()
    a = network.host("a", A, 65000)
    a.peer(DynamicPeerConfig(name="racks", prefix="10.0.0.0/24", limit=1))
    for number in (11, 12):
        host = network.host(f"h{number}", f"10.0.0.{number}", 65000 + number)
        host.peer(PeerConfig(name="a", address=A, peer_asn=65000))
    network.run(5)
    (event,) = [event for event in a.events if isinstance(event, ConnectionsRefused)]
    assert event.reason == "racks is at its limit of 1"
    # Another configuration makes another router, and the count goes on.
    before = next(a.engine.views.instances()).refused
    a.give(SetInstance(InstanceConfig(name=INSTANCE, local_asn=65000, router_id="192.0.2.99")))
    network.run(0.01)
    assert next(a.engine.views.instances()).refused >= before


def silent_connection(network: Network, host: Host, address: str, number: int) -> None:
    """Connect from an address, and send nothing."""
    host.give(TransportAccepted(-number, INSTANCE, (host.address, 179), (address, 40000)))


def test_h03_silent_connections_do_not_keep_peers_out_of_a_dynamic_range() -> None:
    network = Network()
    a = network.host("a", A, 65000)
    a.peer(DynamicPeerConfig(name="racks", prefix="10.0.0.0/24", limit=20, import_="all"))
    for number in range(20):
        silent_connection(network, a, f"10.0.0.{100 + number}", 1000 + number)
        network.run(0.01)
    good = [network.host(f"h{n}", f"10.0.0.{n}", 65000 + n) for n in range(11, 16)]
    for host in good:
        host.peer(PeerConfig(name="a", address=A, peer_asn=65000))
    network.run(5)
    assert all(host.status().established for host in good)
    # The oldest silent ones have made room, and each of the others still has its time for an OPEN.
    names = {status.name for status in a.engine.views.peers(network.now)}
    assert names == {host.address for host in good} | {f"10.0.0.{n}" for n in range(105, 120)}
    assert next(a.engine.views.instances()).refused >= 5
    assert any(isinstance(event, ConnectionsRefused) for event in a.events)
    # Silent connections never end the session of a peer.
    for number in range(40):
        silent_connection(network, a, f"10.0.0.{200 + number}", 2000 + number)
        network.run(1)
    assert all(host.status().established for host in good)
    assert all(host.status().flaps == 0 for host in good)


def test_a_connection_has_two_seconds_for_its_open_in_a_full_range() -> None:
    network = Network()
    a = network.host("a", A, 65000)
    a.peer(DynamicPeerConfig(name="racks", prefix="10.0.0.0/24", limit=1))
    silent_connection(network, a, "10.0.0.11", 1)
    network.run(1.9)
    silent_connection(network, a, "10.0.0.12", 2)
    assert [status.name for status in a.engine.views.peers(network.now)] == ["10.0.0.11"]
    network.run(0.2)
    silent_connection(network, a, "10.0.0.12", 3)
    assert [status.name for status in a.engine.views.peers(network.now)] == ["10.0.0.12"]


def test_commands_with_an_unknown_name_are_rejected() -> None:
    a = Network().host("a", A, 65001)
    with pytest.raises(UnknownName, match="there is no instance 'x'"):
        a.give(SetPeer("x", PeerConfig(name="b", address=B)))
    with pytest.raises(UnknownName, match="there is no peer 'x'"):
        list(a.engine.views.routes_received(INSTANCE, "x", IPV4_UNICAST))
    a.give(RemovePeer("x", "y"))
    a.give(RemoveInstance("x"))
    a.give(RemoveRouteSet("x", "y"))


def test_a_recreated_instance_restarts_its_sessions_and_keeps_its_routes() -> None:
    network = Network()
    a, b = pair(network)
    a.routes({"10.1.0.0/16": RouteAttributes()})
    network.run(1)
    config = a.engine.instance(INSTANCE).config
    b.peer(PeerConfig(name="a", address=A, peer_asn=0, passive=True, import_="all"))
    network.run(5)
    a.give(SetInstance(type(config)(name=INSTANCE, local_asn=65001, router_id="192.0.2.99")))
    network.run(10)
    assert b.status().peer_router_id == "192.0.2.99"
    assert b.received(IPV4_UNICAST)["10.1.0.0/16"].as_path == "65001"


def test_state_changes_and_errors_are_reported() -> None:
    network = Network()
    a, _ = pair(network)
    network.run(1)
    states = [event.new for event in a.events if isinstance(event, StateChanged)]
    assert states == ["Connect", "OpenSent", "OpenConfirm", "Established"]
    local = [event.local_address for event in a.events if isinstance(event, StateChanged)]
    assert local == ["", A, A, A]
    a.give(RemovePeer(INSTANCE, "b"))
    assert [event.local_address for event in a.events if isinstance(event, StateChanged)][-1] == ""
    errors = [event for event in a.events if isinstance(event, SessionError)]
    assert [(e.sent, e.code, e.subcode) for e in errors] == [(True, 6, 3)]
