"""A session that is down: since when, why, and the likely cause, the same in every attempt."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from speaker.api import PeerConfig, PeerStatus, Secret
from speaker.engine.inputs import (
    EnablePeer,
    RemovePeer,
    ResetPeer,
    SetPeer,
    ShutDownPeer,
    TransportFailed,
)
from speaker.iana import Role
from speaker.peer.actions import Connect
from tests.speaker.network import INSTANCE, Host, Network

A, B = "10.0.0.1", "10.0.0.2"


def lonely(network: Network, **config: object) -> Host:
    """Return a router whose only peer has an address that no host has."""
    host = network.host("a", A, 65001)
    network.run(100)
    host.peer(PeerConfig(name="b", address=B, peer_asn=65002, **config))  # type: ignore[arg-type]
    return host


def seen(network: Network, host: Host, seconds: int) -> list[PeerStatus]:
    found = []
    for _ in range(seconds):
        network.run(1)
        found.append(host.status())
    return found


def test_since_is_the_time_of_the_configuration_before_the_first_session() -> None:
    network = Network()
    host = lonely(network)
    configured = network.now
    assert {status.since for status in seen(network, host, 300)} == {configured}


def test_since_is_the_end_of_the_last_session() -> None:
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65002)
    a.peer(PeerConfig(name="b", address=B, peer_asn=65002))
    b.peer(PeerConfig(name="a", address=A, peer_asn=65001, passive=True))
    network.run(30)
    up = a.status()
    assert up.established
    assert up.since < 30
    b.listens = False
    for connection in list(b.ends):
        network.cut(b, connection)
    network.run(1)
    lost = network.now
    down = seen(network, a, 300)
    assert not any(status.established for status in down)
    assert len({status.since for status in down}) == 1
    assert down[0].since == pytest.approx(lost, abs=1.5)
    b.listens = True
    network.run(300)
    assert a.status().established
    assert a.status().since > lost + 200


def test_the_reason_has_no_countdown_and_is_the_same_in_every_attempt() -> None:
    network = Network()
    host = lonely(network)
    found = seen(network, host, 300)
    assert {status.reason for status in found[2:]} == {"connection refused"}
    assert len({status.retry_in for status in found}) > 10
    assert found[-1].failures > 5


@pytest.mark.parametrize(
    ("reason", "password", "words"),
    [
        ("no answer to the connection attempt", None, "requires a TCP MD5 password, which is not"),
        (
            "no answer to the connection attempt",
            Secret(b"x"),
            "TCP MD5 passwords differ, or the peer has",
        ),
        ("connection timed out", Secret(b"x"), "TCP MD5 passwords differ"),
        ("connection refused", None, "no BGP speaker listens"),
        ("no route to host", None, "no route to the address"),
        ("network is unreachable", None, "no route to the address"),
        ("out of memory", None, ""),
    ],
)
def test_the_likely_cause_of_a_failed_attempt(
    reason: str, password: Secret | None, words: str
) -> None:
    network = Network()
    host = network.host("a", A, 65001)
    config = PeerConfig(name="b", address=B, peer_asn=65002, password=password)
    actions = host.give(SetPeer(INSTANCE, config))
    (connect,) = [action for action in actions if isinstance(action, Connect)]
    host.give(TransportFailed(connect.connection, reason))
    assert host.status().reason == reason
    assert words in host.status().likely_cause
    assert bool(words) == bool(host.status().likely_cause)


def test_an_attempt_that_is_given_up_for_the_next_one_has_a_reason() -> None:
    network = Network()
    host = network.host("a", A, 65001)
    host.peer(PeerConfig(name="b", address=B, peer_asn=65002, connect_retry_time=10))
    network.silent.add(B)
    network.run(60)
    assert host.status().reason == "no answer to the connection attempt"
    assert host.status().failures >= 3


def test_a_session_that_is_up_has_neither_reason_nor_cause() -> None:
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65002)
    b.listens = False
    a.peer(PeerConfig(name="b", address=B, peer_asn=65002))
    b.peer(PeerConfig(name="a", address=A, peer_asn=65001, passive=True))
    network.run(10)
    b.listens = True
    network.run(60)
    status = a.status()
    assert status.established
    assert (status.reason, status.likely_cause, status.failures) == ("", "", 0)


def test_a_rejected_open_is_the_reason_while_the_peer_closes_connections() -> None:
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65002)
    a.peer(PeerConfig(name="b", address=B, peer_asn=65002, role=Role.PEER, role_strict=True))
    b.peer(PeerConfig(name="a", address=A, peer_asn=65001, passive=True))
    network.run(1)
    assert "the peer sent no role" in a.status().reason
    # GoBGP accepts connections in its pause after an error, and closes them.
    b.give(RemovePeer(INSTANCE, "a"))
    network.run(30)
    assert a.status().reason == "the peer sent no role; then connection lost: closed by the peer"
    assert a.status().likely_cause == ""


def test_short_sessions_that_the_peer_ends_hint_at_two_speakers_with_one_address() -> None:
    """A peer with graceful restart drops a session without a NOTIFICATION for a new one."""
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65002)
    a.peer(PeerConfig(name="b", address=B, peer_asn=65002))
    b.peer(PeerConfig(name="a", address=A, peer_asn=65001, passive=True))
    causes = []
    for _ in range(3):
        assert end_of_session(network, a, b, after=7)
        causes.append(a.status().likely_cause)
    assert causes[0] == ""
    assert all("another BGP speaker has this node's address" in cause for cause in causes[1:])
    assert end_of_session(network, a, b, after=120)
    assert a.status().likely_cause == ""


def end_of_session(network: Network, a: Host, b: Host, *, after: float) -> bool:
    """Have the peer close the connection some seconds after the session was Established."""
    for _ in range(600):
        if a.status().established:
            break
        network.run(0.5)
    network.run(after)
    was_established = a.status().established
    for number in list(b.ends):
        network.cut(b, number)
    network.run(0.01)
    return was_established and not a.status().established


@pytest.mark.parametrize("connects", [False, True])
def test_an_enabled_peer_shows_what_it_waits_for(*, connects: bool) -> None:
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65002)
    a.peer(PeerConfig(name="b", address=B, peer_asn=65002, passive=True))
    if connects:
        b.peer(PeerConfig(name="a", address=A, peer_asn=65001))
        network.run(30)
        assert a.status().established
    b.give(RemovePeer(INSTANCE, "a"))
    a.give(ResetPeer(INSTANCE, "b"))
    network.run(10)
    a.give(ShutDownPeer(INSTANCE, "b", "later"))
    network.run(10)
    assert a.status().reason == "shut down: later"
    a.give(EnablePeer(INSTANCE, "b"))
    network.run(10)
    assert a.status().reason == "waiting for the peer to connect"


def test_a_peer_that_the_configuration_enables_shows_what_it_waits_for() -> None:
    network = Network()
    a = network.host("a", A, 65001)
    peer = PeerConfig(name="b", address=B, peer_asn=65002, passive=True, disabled_reason="off")
    a.peer(peer)
    network.run(10)
    assert a.status().reason == "off"
    a.peer(replace(peer, disabled_reason=None))
    network.run(10)
    assert a.status().reason == "waiting for the peer to connect"
