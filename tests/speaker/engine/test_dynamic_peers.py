"""Ranges and their dynamic peers: which configuration an address has, and who gets the last places."""

from __future__ import annotations

import pytest

from speaker.api import (
    ConnectionsRefused,
    DynamicPeerConfig,
    GracefulRestart,
    MaximumPrefixes,
    PeerConfig,
    RouteAttributes,
)
from speaker.engine import Engine
from speaker.engine.inputs import (
    BytesReceived,
    EnablePeer,
    NeighborFound,
    RemovePeer,
    ResetPeer,
    SetPeer,
    ShutDownPeer,
    TransportAccepted,
)
from speaker.engine.instance.source_history import MAX_SOURCES, SourceHistory
from speaker.iana import IPV4_UNICAST
from tests.speaker.network import INSTANCE, Host, Network
from tests.speaker.raw import open_message

A, B = "10.0.0.1", "10.0.0.2"
OURS, THEIRS = "10.1.0.0/24", "10.2.0.0/24"
RESTART = GracefulRestart(restart_time=60, stale_time=30)
OPEN = open_message()


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
    assert [status.name for status in a.engine.views.peers(network.now)] == ["tor"]
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
    assert list(a.engine.views.peers(network.now)) == []


def test_without_a_session_the_entry_leaves_nothing_to_the_range() -> None:
    network, a, b = up()
    a.peer(entry(graceful_restart=None))
    network.run(10)
    crash(network, b)
    network.run(10)
    remove(a, B)
    assert list(a.engine.views.peers(network.now)) == []


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
    assert list(a.engine.views.peers(network.now)) == []
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
    assert list(a.engine.views.peers(network.now)) == []


def test_a_range_with_another_as_leaves_no_peer_behind() -> None:
    network, a, b = up()
    a.peer(racks(peer_asn=65009))
    assert list(a.engine.views.peers(network.now)) == []
    network.run(200)
    crash(network, b)
    network.run(200)
    assert list(a.engine.views.peers(network.now)) == []


def test_an_unnumbered_peer_has_its_neighbours_address_before_a_range() -> None:
    link = "fe80::2%eth0"
    network = Network()
    a = network.host("a", "fe80::1%eth0", 65001)
    a.peer(racks(prefix="fe80::/10"))
    a.peer(PeerConfig(name="eth0", address=None, interface="eth0"))
    a.give(TransportAccepted(-1, INSTANCE, ("fe80::1%eth0", 179), (link, 40000)))
    assert {status.name for status in a.engine.views.peers(network.now)} == {"eth0", link}
    a.give(NeighborFound("eth0", link))
    assert {status.name for status in a.engine.views.peers(network.now)} == {"eth0"}


def test_a_range_and_an_entry_that_change_together() -> None:
    network, a, b = up()
    a.give(SetPeer(INSTANCE, entry(import_="none")))
    a.give(SetPeer(INSTANCE, racks(import_="none", export="none")))
    remove(a, B)
    network.run(1)
    assert (a.status().flaps, a.status().dynamic) == (0, True)
    assert OURS not in b.available(IPV4_UNICAST)
    assert THEIRS not in a.available(IPV4_UNICAST)


# ------------------------------------------------------------------ the limit of prefixes


def beyond_the_limit(restart_after: int | None = None) -> tuple[Network, Host, Host]:
    """A dynamic peer that has sent one prefix too many, and keeps trying."""
    limit = MaximumPrefixes(1, restart_after=restart_after)
    network, a, b = up(racks(maximum_prefixes=(limit,), graceful_restart=None))
    b.routes({"10.3.0.0/24": RouteAttributes()})
    network.run(1)
    assert not b.status().established
    return network, a, b


def test_a_dynamic_peer_beyond_its_limit_stays_out() -> None:
    network, a, b = beyond_the_limit()
    network.run(600)
    assert b.status().flaps == 1
    assert a.available(IPV4_UNICAST).keys() == {OURS}
    assert "the limit is 1" in a.status().reason


def test_a_dynamic_peer_beyond_its_limit_is_back_after_its_time() -> None:
    network, a, b = beyond_the_limit(restart_after=60)
    b.routes({"10.3.0.0/24": None})
    network.run(50)
    assert not b.status().established
    network.run(200)
    assert b.status().established
    assert a.status().dynamic


def test_a_dynamic_peer_beyond_its_limit_that_does_not_come_back_is_forgotten() -> None:
    network, a, b = beyond_the_limit(restart_after=60)
    b.give(RemovePeer(INSTANCE, "a"))
    network.run(50)
    assert len(list(a.engine.views.peers(network.now))) == 1
    network.run(50)
    assert list(a.engine.views.peers(network.now)) == []


@pytest.mark.parametrize("end", ["reset", "shut down and enabled", "another limit"])
def test_an_operator_lets_a_dynamic_peer_beyond_its_limit_in(end: str) -> None:
    network, a, b = beyond_the_limit()
    b.routes({"10.3.0.0/24": None})
    if end == "reset":
        a.give(ResetPeer(INSTANCE, B))
    elif end == "another limit":
        a.peer(racks(maximum_prefixes=(MaximumPrefixes(5),), graceful_restart=None))
    else:
        a.give(ShutDownPeer(INSTANCE, B))
        network.run(600)
        assert not b.status().established
        a.give(EnablePeer(INSTANCE, B))
    assert list(a.engine.views.peers(network.now)) == []
    network.run(200)
    assert b.status().established


def test_kept_routes_of_a_dynamic_peer_beyond_its_limit_leave_it_out() -> None:
    limit = MaximumPrefixes(1)
    network, a, b = up(racks(maximum_prefixes=(limit,)))
    b.routes({"10.3.0.0/24": RouteAttributes()})
    network.run(1000)
    assert b.status().flaps == 1
    assert a.available(IPV4_UNICAST).keys() == {OURS}
    a.peer(entry())
    network.run(200)
    assert b.status().established


# ------------------------------------------------------------------ the last places

LIMIT = 20


class Flood:
    """Connections into a range, 42 a second, each with an OPEN and nothing after it."""

    def __init__(self, sources: int) -> None:
        self.network = Network()
        self.router = self.network.host("a", A, 65001)
        self.router.peer(racks(prefix="10.0.0.0/16", limit=LIMIT, graceful_restart=None))
        self.sources = [f"10.0.9.{number + 1}" for number in range(sources)]
        self.count = 0

    def run(self, seconds: float) -> None:
        """Flood for a time."""
        for _ in range(int(seconds * 42)):
            self.count += 1
            address = self.sources[self.count % len(self.sources)]
            number = -1_000_000 - self.count
            self.router.give(TransportAccepted(number, INSTANCE, (A, 179), (address, 40000)))
            self.router.give(BytesReceived(number, OPEN))
            self.network.run(1 / 42)

    def good(self, address: str) -> Host:
        """Add a peer that behaves."""
        host = self.network.host(address, address, 65100)
        host.peer(PeerConfig(name="a", address=A, connect_retry_time=5))
        return host


def lose_session(flood: Flood, host: Host) -> None:
    """Cut the connection of a peer, and have a flood take its place before it is back."""
    for number in list(host.ends):
        flood.network.cut(host, number)
    flood.run(1)
    host.give(RemovePeer(INSTANCE, "a"))
    flood.run(1)
    host.peer(PeerConfig(name="a", address=A, connect_retry_time=5))


@pytest.mark.parametrize("sources", [42, 250])
def test_h03_a_peer_that_was_up_has_its_place_in_a_flooded_range(sources: int) -> None:
    flood = Flood(sources)
    good = flood.good("10.0.0.2")
    flood.run(5)
    assert good.status().established
    lose_session(flood, good)
    flood.run(3)
    assert good.status().established
    flood.run(20)
    assert good.status().flaps == 0


@pytest.mark.parametrize("sources", [21, 42, 100])
def test_h03_a_new_peer_gets_a_place_in_a_range_that_few_sources_flood(sources: int) -> None:
    flood = Flood(sources)
    flood.run(20)
    good = flood.good("10.0.0.2")
    flood.run(25)
    assert good.status().established
    assert next(flood.router.engine.views.instances()).refused > 100


def test_a_peer_that_was_up_does_not_take_the_place_of_another_peer() -> None:
    flood = Flood(1)
    hosts = [flood.good(f"10.0.1.{number}") for number in range(1, LIMIT + 2)]
    flood.network.run(60)
    up = [host for host in hosts if host.status().established]
    assert len(up) == LIMIT
    (late,) = [host for host in hosts if host not in up]
    up[0].give(RemovePeer(INSTANCE, "a"))
    flood.network.run(130)
    assert late.status().established
    up[0].peer(PeerConfig(name="a", address=A, connect_retry_time=5))
    flood.network.run(60)
    assert not up[0].status().established
    assert all(host.status().flaps == 0 for host in (late, *up[1:]))


def test_without_a_full_range_no_address_waits() -> None:
    flood = Flood(5)
    flood.run(10)
    assert next(flood.router.engine.views.instances()).refused == 0


def test_the_memory_of_addresses_is_bounded() -> None:
    history = SourceHistory()
    for number in range(3 * MAX_SOURCES):
        history.established(f"known {number}")
        history.failed(f"failed {number}", 0.0)
    assert history.is_known(f"known {3 * MAX_SOURCES - 1}")
    assert not history.is_known("known 0")
    assert history.must_wait(f"failed {3 * MAX_SOURCES - 1}", 1.0)
    assert not history.must_wait("failed 0", 1.0)


def test_an_address_waits_longer_after_each_failure() -> None:
    history = SourceHistory()
    now, pauses = 0.0, []
    for _ in range(8):
        history.failed(B, now)
        end = now
        while history.must_wait(B, end):
            end += 1
        pauses.append(end - now)
        now = end
    assert pauses == [5, 10, 20, 40, 60, 60, 60, 60]
    history.failed(B, now + 300)
    assert not history.must_wait(B, now + 305)
    history.established(B)
    history.failed(B, now + 310)
    assert not history.must_wait(B, now + 310)
