"""Ranges and their dynamic peers: which configuration an address has, and who gets the last places."""

from __future__ import annotations

import pytest

from speaker.api import (
    ConnectionsRefused,
    DynamicPeerConfig,
    GracefulRestart,
    PeerConfig,
    RouteAttributes,
)
from speaker.engine import Engine
from speaker.engine.inputs import NeighborFound, RemovePeer, SetPeer, TransportAccepted
from speaker.iana import IPV4_UNICAST
from tests.speaker.network import INSTANCE, Host, Network

A, B = "10.0.0.1", "10.0.0.2"
OURS, THEIRS = "10.1.0.0/24", "10.2.0.0/24"
RESTART = GracefulRestart(restart_time=60, stale_time=30)


def racks(**changes: object) -> DynamicPeerConfig:
    """The range of the peer."""
    values: dict[str, object] = {
        "name": "racks", "prefix": "10.0.0.0/24", "export": "all", "import_": "all",
        "graceful_restart": RESTART, **changes,
    }  # fmt: skip
    return DynamicPeerConfig(**values)  # type: ignore[arg-type]


def entry(**changes: object) -> PeerConfig:
    """The peer's own configuration, by default with the settings of the range."""
    values: dict[str, object] = {
        "name": B, "address": B, "export": "all", "import_": "all", "graceful_restart": RESTART,
        **changes,
    }  # fmt: skip
    return PeerConfig(**values)  # type: ignore[arg-type]


def up(*ranges: DynamicPeerConfig) -> tuple[Network, Host, Host]:
    """The router a with ranges, and b that is up through one of them."""
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65002)
    for config in ranges or (racks(),):
        a.peer(config)
    a.routes({OURS: RouteAttributes()})
    b.peer(
        PeerConfig(
            name="a", address=A, import_="all", export="all", connect_retry_time=5,
            graceful_restart=RESTART,
        )
    )  # fmt: skip
    b.routes({THEIRS: RouteAttributes()})
    network.run(10)
    assert a.status().dynamic
    assert a.status().established
    return network, a, b


def remove(host: Host, name: str) -> None:
    """Remove a peer or a range."""
    host.give(RemovePeer(INSTANCE, name))


def crash(network: Network, host: Host) -> None:
    """End the process of a host, without a word on its connections."""
    host.listens = False
    for number in list(host.ends):
        network.cut(host, number)
    host.engine = Engine(network.rng)


def test_an_entry_of_its_own_takes_the_session_over() -> None:
    network, a, b = up()
    a.peer(entry())
    network.run(5)
    assert (a.status().dynamic, a.status().flaps, a.status().established) == (False, 0, True)
    # It is connected to when the session ends, and stays without one.
    b.give(RemovePeer(INSTANCE, "a"))
    network.run(5)
    assert not a.status().established
    connects = len(a.connects)
    b.peer(PeerConfig(name="a", address=A, passive=True))
    network.run(200)
    assert a.status().established
    assert len(a.connects) > connects


def test_the_difference_between_range_and_entry_is_sent() -> None:
    network, a, b = up()
    a.peer(entry(export="none", import_="none"))
    network.run(1)
    assert a.status().flaps == 0
    assert OURS not in b.available(IPV4_UNICAST)
    assert THEIRS not in a.available(IPV4_UNICAST)


def test_changes_of_the_range_are_no_changes_of_the_entry() -> None:
    network, a, b = up()
    a.peer(entry(export="none"))
    a.peer(racks(hold_time=60, export="all"))
    network.run(10)
    assert a.status().flaps == 0
    assert OURS not in b.available(IPV4_UNICAST)
    remove(a, "racks")
    network.run(10)
    assert a.status().flaps == 0


def test_another_hold_time_resets_the_session_as_of_any_peer() -> None:
    network, a, _ = up()
    a.peer(entry(hold_time=60))
    network.run(30)
    assert (a.status().established, a.status().dynamic, a.status().hold_time) == (True, False, 60)
    assert a.status().flaps == 1


@pytest.mark.parametrize(("address", "flaps"), [(A, 0), ("10.0.0.77", 1)])
def test_the_local_address_of_the_session_is_no_difference(address: str, flaps: int) -> None:
    network, a, _ = up()
    a.peer(entry(local_address=address, port=1790))
    network.run(10)
    assert a.status().flaps == flaps
    assert not a.status().dynamic


def test_an_entry_with_another_name_is_another_peer() -> None:
    network, a, b = up()
    a.peer(entry(name="tor", export="none"))
    assert [status.name for status in a.engine.peers(network.now)] == ["tor"]
    network.run(60)
    assert a.status("tor").established
    assert OURS not in b.available(IPV4_UNICAST)


def test_an_entry_with_another_as_is_another_peer() -> None:
    network, a, _ = up()
    a.peer(entry(peer_asn=65009))
    network.run(10)
    assert not a.status().dynamic
    assert not a.status().established
    assert "peer AS 65002, expected 65009" in a.status().reason


def test_an_entry_that_only_has_the_name_of_a_dynamic_peer_ends_it() -> None:
    network, a, _ = up()
    a.peer(entry(address="10.0.0.9"))
    network.run(100)
    assert (a.status().address, a.status().established) == ("10.0.0.9", False)
    assert not a.status().dynamic
    # The name is taken: the address stays out.
    assert any(isinstance(event, ConnectionsRefused) for event in a.events)


def test_the_session_comes_back_to_the_range_without_the_entry() -> None:
    network, a, b = up()
    a.peer(entry(export="none"))
    network.run(1)
    remove(a, B)
    network.run(1)
    assert (a.status().dynamic, a.status().flaps, a.status().established) == (True, 0, True)
    assert OURS in b.available(IPV4_UNICAST)
    b.give(RemovePeer(INSTANCE, "a"))
    network.run(1)
    assert list(a.engine.peers(network.now)) == []


def test_without_a_session_the_entry_leaves_nothing_to_the_range() -> None:
    network, a, b = up()
    a.peer(entry(graceful_restart=None))
    network.run(10)
    crash(network, b)
    network.run(10)
    remove(a, B)
    assert list(a.engine.peers(network.now)) == []


def test_a_full_range_does_not_take_the_session_back() -> None:
    network, a, _ = up()
    a.peer(entry())
    a.peer(racks(limit=1))
    other = network.host("c", "10.0.0.3", 65003)
    other.peer(PeerConfig(name="a", address=A, connect_retry_time=5))
    network.run(10)
    remove(a, B)
    network.run(10)
    assert a.status().name == "10.0.0.3"


def test_kept_routes_of_a_dynamic_peer_pass_to_its_entry_and_back() -> None:
    network, a, b = up()
    crash(network, b)
    network.run(5)
    assert THEIRS in a.available(IPV4_UNICAST)
    a.peer(entry(hold_time=60))
    network.run(5)
    assert THEIRS in a.available(IPV4_UNICAST)
    assert not a.status().dynamic
    remove(a, B)
    network.run(5)
    assert a.status().dynamic
    assert THEIRS in a.available(IPV4_UNICAST)
    network.run(100)
    assert list(a.engine.peers(network.now)) == []
    assert a.available(IPV4_UNICAST).keys() == {OURS}


def test_a_narrower_range_takes_the_peers_of_a_wider_one_over_and_gives_them_back() -> None:
    network, a, b = up()
    a.peer(racks(name="rack 1", prefix="10.0.0.0/28", export="none"))
    network.run(1)
    assert OURS not in b.available(IPV4_UNICAST)
    # The wider one is theirs no more.
    a.peer(racks(export="local"))
    network.run(1)
    assert OURS not in b.available(IPV4_UNICAST)
    remove(a, "rack 1")
    network.run(1)
    assert OURS in b.available(IPV4_UNICAST)
    assert (a.status().flaps, a.status().dynamic) == (0, True)
    remove(a, "racks")
    assert list(a.engine.peers(network.now)) == []


def test_a_range_with_another_as_leaves_no_peer_behind() -> None:
    network, a, b = up()
    a.peer(racks(peer_asn=65009))
    assert list(a.engine.peers(network.now)) == []
    network.run(200)
    crash(network, b)
    network.run(200)
    assert list(a.engine.peers(network.now)) == []


def test_an_unnumbered_peer_has_its_neighbours_address_before_a_range() -> None:
    link = "fe80::2%eth0"
    network = Network()
    a = network.host("a", "fe80::1%eth0", 65001)
    a.peer(racks(prefix="fe80::/10"))
    a.peer(PeerConfig(name="eth0", address=None, interface="eth0"))
    a.give(TransportAccepted(-1, INSTANCE, ("fe80::1%eth0", 179), (link, 40000)))
    assert {status.name for status in a.engine.peers(network.now)} == {"eth0", link}
    a.give(NeighborFound("eth0", link))
    assert {status.name for status in a.engine.peers(network.now)} == {"eth0"}


def test_a_range_and_an_entry_that_change_together() -> None:
    network, a, b = up()
    a.give(SetPeer(INSTANCE, entry(import_="none")))
    a.give(SetPeer(INSTANCE, racks(import_="none", export="none")))
    remove(a, B)
    network.run(1)
    assert (a.status().flaps, a.status().dynamic) == (0, True)
    assert OURS not in b.available(IPV4_UNICAST)
    assert THEIRS not in a.available(IPV4_UNICAST)
