"""What a path that BFD has found down does to a session: RFC 5882 section 4, RFC 9384."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from speaker.api import GracefulRestart, PathDown, PeerConfig, RouteAttributes
from speaker.engine.inputs import PathsDown
from speaker.iana import IPV4_UNICAST
from speaker.peer.actions import Close, Write
from speaker.recording import Player
from tests.speaker.network import INSTANCE, Host, Network

A, B = "10.0.0.1", "10.0.0.2"
ROUTES = {"10.8.0.0/24": RouteAttributes(), "10.9.0.0/24": RouteAttributes(communities=(7,))}
NO_BFD = "BFD is not Up"
EXPIRED = "Control Detection Time Expired"


def paths_down(instance: str, peer: str, reason: str, *, independent: bool = True) -> PathsDown:
    return PathsDown((PathDown(instance, peer, reason, independent),))


def config(host: Host) -> PeerConfig:
    """Return the configuration of the only peer."""
    (found,) = host.engine.instance(INSTANCE).peers.values()
    return found.config


def established(*, graceful: bool = False, record: bool = False) -> tuple[Network, Host, Host]:
    """Return the router a, whose routes b has."""
    network = Network(record=record)
    a, b = network.host("a", A, 65001), network.host("b", B, 65002)
    restart = GracefulRestart(restart_time=60, stale_time=30) if graceful else None
    for host, name, address, asn in ((a, "b", B, 65002), (b, "a", A, 65001)):
        host.peer(
            PeerConfig(
                name=name,
                address=address,
                peer_asn=asn,
                passive=host is b,
                import_="all",
                export="all",
                graceful_restart=restart,
            )
        )
    a.routes(ROUTES)
    network.run(10)
    assert b.status().established
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)
    return network, a, b


@pytest.mark.parametrize("graceful", [False, True])
def test_the_session_ends_with_cease_bfd_down_and_the_routes_go(*, graceful: bool) -> None:
    network, a, b = established(graceful=graceful)
    b.give(paths_down(INSTANCE, "a", EXPIRED))
    assert not b.status().established
    assert b.status().reason == f"BFD: {EXPIRED}"
    assert b.available(IPV4_UNICAST) == {}
    network.run(0.01)
    assert "BFD Down" in a.status().reason
    assert b.status().flaps == 1


@pytest.mark.parametrize("graceful", [False, True])
def test_bfd_down_is_within_a_hard_reset_where_both_ends_have_rfc_8538(*, graceful: bool) -> None:
    """RFC 9384 section 4: without it the peer would keep routes over the path that is down."""
    _, _, b = established(graceful=graceful)
    b.writes.clear()
    b.give(paths_down(INSTANCE, "a", EXPIRED))
    assert b.sent()[18:] == (bytes([3, 6, 9, 6, 10]) if graceful else bytes([3, 6, 10]))


def test_the_session_is_tried_again_after_a_pause() -> None:
    network, _, b = established()
    b.give(paths_down(INSTANCE, "a", EXPIRED))
    network.run(60)
    assert b.status().established


def test_flaps_are_damped() -> None:
    network, _, b = established()
    pauses = []
    for _ in range(4):
        b.give(paths_down(INSTANCE, "a", EXPIRED))
        began = network.now
        while not b.status().established:
            network.run(1)
        pauses.append(network.now - began)
        network.run(5)
    assert pauses[-1] > 2 * pauses[0]


def test_a_peer_that_may_be_restarting_keeps_its_routes() -> None:
    """Its BFD depends on its control plane (C bit clear): RFC 5882 section 4.3."""
    network, a, b = established(graceful=True)
    a.writes.clear()
    b.writes.clear()
    b.give(paths_down(INSTANCE, "a", EXPIRED, independent=False))
    assert not b.status().established
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)
    assert b.sent() == b"", "no NOTIFICATION, by which the peer would remove ours"
    network.run(60)
    assert b.status().established
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)


def test_without_graceful_restart_the_routes_go_whatever_the_c_bit_is() -> None:
    _, _, b = established()
    b.give(paths_down(INSTANCE, "a", EXPIRED, independent=False))
    assert b.available(IPV4_UNICAST) == {}


def test_the_wait_for_a_restarting_peer_ends() -> None:
    network, a, b = established(graceful=True)
    a.listens = False
    for connection in list(a.ends):
        network.cut(a, connection)
    network.run(1)
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)
    b.give(paths_down(INSTANCE, "a", EXPIRED, independent=False))
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES), "the peer may be restarting"
    b.give(paths_down(INSTANCE, "a", EXPIRED))
    assert b.available(IPV4_UNICAST) == {}


def test_a_session_that_is_being_set_up_goes_on() -> None:
    network = Network(latency=(1.0, 1.0))
    a, b = network.host("a", A, 65001), network.host("b", B, 65002)
    a.peer(PeerConfig(name="b", address=B, peer_asn=65002))
    b.peer(PeerConfig(name="a", address=A, peer_asn=65001, passive=True))
    while a.status().state != "OpenSent":
        network.run(0.1)
    a.give(paths_down(INSTANCE, "b", EXPIRED))
    network.run(10)
    assert a.status().established
    assert a.status().flaps == 0


def test_the_path_of_an_unknown_peer_stops_no_other() -> None:
    _, a, _ = established()
    unknown = PathDown(INSTANCE, "x"), PathDown("another instance", "b")
    a.give(PathsDown((*unknown, PathDown(INSTANCE, "b", EXPIRED))))
    assert not a.status().established


def test_all_notifications_are_sent_before_the_first_report() -> None:
    network = Network()
    hub = network.host("hub", A, 65001)
    names = ["b", "c", "d"]
    for number, name in enumerate(names, 2):
        address = f"10.0.0.{number}"
        other = network.host(name, address, 65001 + number)
        other.peer(PeerConfig(name="hub", address=A, peer_asn=65001, passive=True))
        hub.peer(PeerConfig(name=name, address=address, peer_asn=65001 + number))
    network.run(10)
    paths = tuple(PathDown(INSTANCE, name, EXPIRED) for name in names)
    kinds = [type(action) for action in hub.engine.handle(PathsDown(paths), network.now)]
    assert kinds[:3] == [Write] * 3
    assert Write not in kinds[3:]
    assert kinds.count(Close) == 3


def test_a_recording_replays_it() -> None:
    network, _, b = established(record=True)
    b.give(paths_down(INSTANCE, "a", EXPIRED))
    network.run(30)
    assert any(b"PathsDown" in line for line in b.lines)
    player = Player(list(b.lines))
    for _ in player.play(None):
        pass
    assert player.difference is None


def test_a_strict_peer_that_may_be_restarting_keeps_its_routes_while_it_waits_for_bfd() -> None:
    """Its BFD depends on its control plane: the wait is no administrative shutdown of the peer."""
    network, a, b = established(graceful=True)
    strict = config(b)
    b.give(paths_down(INSTANCE, "a", EXPIRED, independent=False))
    b.writes.clear()
    b.peer(replace(strict, disabled_reason=NO_BFD, disabled_for_a_while=True))
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)
    assert b.sent() == b"", "no NOTIFICATION, by which the peer would remove ours"
    network.run(5)
    assert not b.status().established
    b.peer(strict)
    network.run(60)
    assert b.status().established
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)
    assert a.status().flaps == 1


def test_routes_that_wait_for_a_strict_peer_go_after_the_restart_time() -> None:
    network, _, b = established(graceful=True)
    strict = config(b)
    b.give(paths_down(INSTANCE, "a", EXPIRED, independent=False))
    b.peer(replace(strict, disabled_reason=NO_BFD, disabled_for_a_while=True))
    network.run(61)
    assert b.available(IPV4_UNICAST) == {}


def test_a_peer_that_is_disabled_for_good_loses_the_routes_that_are_kept() -> None:
    _, _, b = established(graceful=True)
    b.give(paths_down(INSTANCE, "a", EXPIRED, independent=False))
    b.peer(replace(config(b), disabled_reason="no Secret"))
    assert b.available(IPV4_UNICAST) == {}
