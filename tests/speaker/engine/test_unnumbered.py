"""Unnumbered peers: they wait for a neighbour on the interface, and follow its address."""

from __future__ import annotations

import pytest

from speaker.api import InvalidConfig, PeerConfig, RouteAttributes, Secret
from speaker.engine.inputs import NeighborFound, RemovePeer
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST
from tests.speaker.network import INSTANCE, Host, Network

NEAR, FAR, OTHER = "fe80::1%eth0", "fe80::2%eth0", "fe80::3%eth0"


def config(**changes: object) -> PeerConfig:
    """A peer at eth0."""
    values: dict[str, object] = {"import_": "all", "export": "all", **changes}
    return PeerConfig(name="eth0", address=None, interface="eth0", **values)  # type: ignore[arg-type]


def cable() -> tuple[Network, Host, Host]:
    """Two hosts with link-local addresses only."""
    network = Network()
    return network, network.host("near", NEAR, 65001), network.host("far", FAR, 65002)


def test_a_peer_waits_until_a_neighbour_is_discovered() -> None:
    network, near, _ = cable()
    near.peer(config())
    network.run(300)
    assert near.status().reason == "no neighbour was discovered on interface eth0 yet"
    assert near.status().address is None
    assert not near.connects


def test_both_ends_meet_and_exchange_ipv4_with_link_local_next_hops_rfc_8950() -> None:
    network, near, far = cable()
    for host, other in ((near, FAR), (far, NEAR)):
        host.peer(config())
        host.give(NeighborFound("eth0", other))
    near.routes({"10.8.0.0/24": RouteAttributes(), "fd00:8::/48": RouteAttributes()})
    network.run(5)
    assert near.status().established
    assert near.status().address == FAR
    assert near.status().peer_asn == 65002
    assert far.available(IPV4_UNICAST)["10.8.0.0/24"].next_hop == "fe80::1"
    assert far.available(IPV6_UNICAST)["fd00:8::/48"].next_hop == "fe80::1"


def test_a_neighbour_discovered_before_the_peer_is_used() -> None:
    network, near, far = cable()
    far.peer(config(passive=True))
    far.give(NeighborFound("eth0", NEAR))
    near.give(NeighborFound("eth0", FAR))
    near.peer(config())
    network.run(5)
    assert near.status().established


def test_a_neighbour_on_another_interface_is_ignored() -> None:
    network, near, _ = cable()
    near.peer(config())
    near.give(NeighborFound("eth1", "fe80::2%eth1"))
    network.run(5)
    assert near.status().address is None


def test_an_established_session_is_kept_when_another_neighbour_appears() -> None:
    network, near, far = cable()
    for host, other in ((near, FAR), (far, NEAR)):
        host.peer(config())
        host.give(NeighborFound("eth0", other))
    network.run(5)
    for heard in (OTHER, FAR, OTHER):
        near.give(NeighborFound("eth0", heard))
        network.run(20)
    assert near.status().established
    assert near.status().flaps == 0
    assert near.status().address == FAR


def test_after_a_session_the_last_discovered_neighbour_is_used() -> None:
    network, near, far = cable()
    other = network.host("other", OTHER, 65003)
    for host in (far, other):
        host.peer(config(passive=True))
        host.give(NeighborFound("eth0", NEAR))
    near.peer(config())
    near.give(NeighborFound("eth0", FAR))
    network.run(5)
    assert near.status().peer_asn == 65002
    near.give(NeighborFound("eth0", OTHER))
    network.run(5)
    assert near.status().peer_asn == 65002
    far.give(RemovePeer(INSTANCE, "eth0"))
    network.run(20)
    assert near.status().established
    assert near.status().peer_asn == 65003


def test_the_loss_of_the_neighbour_does_not_end_an_established_session() -> None:
    network, near, far = cable()
    for host, other in ((near, FAR), (far, NEAR)):
        host.peer(config())
        host.give(NeighborFound("eth0", other))
    network.run(5)
    near.give(NeighborFound("eth0", None))
    network.run(200)
    assert near.status().established
    near.give(NeighborFound("eth0", FAR))
    network.run(200)
    assert near.status().flaps == 0


def test_removing_the_peer_forgets_the_neighbour() -> None:
    network, near, _ = cable()
    near.peer(config())
    near.give(NeighborFound("eth0", FAR))
    near.give(RemovePeer(INSTANCE, "eth0"))
    near.give(NeighborFound("eth0", OTHER))
    network.run(10)
    assert list(near.engine.views.peers(network.now)) == []


def test_a_password_needs_an_address() -> None:
    with pytest.raises(InvalidConfig, match="password: only for a peer with an address"):
        config(password=Secret("x"))


def test_rfc2545_3_routes_of_a_link_local_session_reach_an_internal_peer_with_its_next_hop() -> (
    None
):
    network, near, far = cable()
    for host, other in ((near, FAR), (far, NEAR)):
        host.peer(config())
        host.give(NeighborFound("eth0", other))
    inside = network.host("inside", "2001:db8::3", 65002)
    for host, other in ((far, "2001:db8::3"), (inside, FAR)):
        name = "inside" if host is far else "far"
        host.peer(PeerConfig(name=name, address=other, peer_asn=65002, import_="all", export="all"))
    near.routes({"10.8.0.0/24": RouteAttributes(), "fd00:8::/48": RouteAttributes()})
    network.run(5)
    assert far.available(IPV6_UNICAST)["fd00:8::/48"].next_hop == "fe80::1"
    # The network has one address for each host; that of `far` stands for a global one.
    assert inside.available(IPV6_UNICAST)["fd00:8::/48"].next_hop == "fe80::2"
    assert inside.available(IPV4_UNICAST)["10.8.0.0/24"].next_hop == "fe80::2"
