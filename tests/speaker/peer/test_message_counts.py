"""Messages are counted by type and direction, over all sessions of a peer."""

from __future__ import annotations

from msgspec.structs import asdict

from speaker.api import MessageCounts, PeerConfig, PeerStatus
from speaker.engine.inputs import RemovePeer
from tests.speaker.network import INSTANCE, Host, Network

HUB, LEAF = "10.0.0.1", "10.0.0.2"


def pair() -> tuple[Network, Host, Host]:
    """Two routers with a session, one route and a route refresh."""
    network = Network()
    hub, leaf = network.host("hub", HUB, 65000), network.host("leaf", LEAF, 65001)
    hub.peer(PeerConfig(name="leaf", address=LEAF, peer_asn=65001, passive=True))
    leaf.peer(PeerConfig(name="hub", address=HUB, peer_asn=65000))
    network.run(3)
    return network, hub, leaf


def status(network: Network, host: Host) -> PeerStatus:
    (found,) = host.engine.views.peers(network.now)
    return found


def test_messages_are_counted_by_type() -> None:
    network, hub, leaf = pair()
    sent, received = status(network, hub).sent_by_type, status(network, leaf).received_by_type
    assert sent == received
    assert (sent.open, sent.notification, sent.route_refresh) == (1, 0, 0)
    assert sent.update >= 1, "End-of-RIB"
    assert sent.keepalive >= 1
    assert sum(asdict(sent).values()) == status(network, hub).messages_sent


def test_route_refreshes_are_counted() -> None:
    network, hub, leaf = pair()
    leaf.refresh("hub")
    network.run(1)
    assert status(network, leaf).sent_by_type.route_refresh == 2, "one of each family"
    assert status(network, hub).received_by_type.route_refresh == 2


def test_the_counts_go_on_over_the_end_of_a_session() -> None:
    network, hub, leaf = pair()
    leaf.give(RemovePeer(INSTANCE, "hub"))
    network.run(1)
    assert status(network, hub).received_by_type.notification == 1
    before = status(network, hub).received_by_type
    leaf.peer(PeerConfig(name="hub", address=HUB, peer_asn=65000))
    network.run(60)
    after = status(network, hub)
    assert after.established
    assert after.received_by_type.open == before.open + 1
    assert after.received_by_type.update > before.update
    assert status(network, leaf).received_by_type != MessageCounts()
