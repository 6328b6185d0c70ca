"""RFC 4271 section 6.8: two connections, one survivor, the same one on both ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.api import GracefulRestart, PeerConfig, SessionError
from speaker.message import KEEPALIVE, Open
from speaker.peer.collision import keep_outgoing
from tests.speaker.hostile import ATTACKER_ASN, BASIC, Arena
from tests.speaker.network import Network

IDENTIFIER = st.integers(1, 2**32 - 1)
ASN = st.integers(1, 2**32 - 1)


@given(st.tuples(IDENTIFIER, ASN), st.tuples(IDENTIFIER, ASN))
def test_both_ends_keep_the_same_connection(one: tuple[int, int], two: tuple[int, int]) -> None:
    if one != two:
        assert keep_outgoing(*one, *two) is not keep_outgoing(*two, *one)


def test_the_higher_identifier_keeps_its_own_connection() -> None:
    assert keep_outgoing(2, 1, 1, 9)
    assert not keep_outgoing(1, 9, 2, 1)


def test_equal_identifiers_are_decided_by_the_as_number_rfc_6286_section_2_3() -> None:
    assert keep_outgoing(7, 65002, 7, 65001)
    assert not keep_outgoing(7, 65001, 7, 65002)


HIGHER, LOWER = 0x0AFFFFFF, 0x00000001
"""Identifiers of the peer; the local one is 10.0.0.1."""


class Crossing:
    """The connections of both sides, up, and no message of the peer on either."""

    def __init__(self, peer_id: int) -> None:
        self.arena = Arena(passive=False)
        self.arena.answer()
        self.local = self.arena.connection
        self.remote = 0
        self._open = Open(
            asn=ATTACKER_ASN, hold_time=90, router_id=peer_id, capabilities=BASIC
        ).encode()

    def connects(self) -> None:
        """The peer connects, too."""
        self.remote = self.arena.accept()

    def opens(self, connection: int) -> None:
        """The peer's OPEN comes on a connection."""
        self.arena.send(self._open, connection)

    def confirms(self, connection: int) -> None:
        """The peer's KEEPALIVE comes on a connection."""
        self.arena.send(KEEPALIVE, connection)

    def ended(self, connection: int) -> bool:
        """Return whether a connection was closed with a Cease for the collision (RFC 4486)."""
        bodies = [body for kind, body in self.arena.messages(connection) if kind == 3]
        assert bodies in ([], [b"\6\7"])
        assert bool(bodies) == (connection in self.arena.closed)
        return bool(bodies)


@pytest.mark.parametrize("first", ["local", "remote"])
@pytest.mark.parametrize("peer_id", [HIGHER, LOWER])
def test_rfc4271_6_8_two_opens_leave_the_connection_of_the_higher_identifier(
    peer_id: int, first: str
) -> None:
    crossing = Crossing(peer_id)
    crossing.connects()
    order = [crossing.local, crossing.remote]
    for connection in order if first == "local" else reversed(order):
        crossing.opens(connection)
    kept, gone = order if peer_id == LOWER else reversed(order)
    assert crossing.ended(gone)
    assert not crossing.ended(kept)
    crossing.confirms(kept)
    assert crossing.arena.status().established
    crossing.arena.check()


@pytest.mark.parametrize("peer_id", [HIGHER, LOWER])
@pytest.mark.parametrize("confirmed", [False, True], ids=["OpenConfirm", "Established"])
def test_rfc4271_6_8_a_connection_beside_a_confirmed_one_is_closed(
    peer_id: int, *, confirmed: bool
) -> None:
    """Our KEEPALIVE is out: the peer may be Established there, and an OPEN could not undo that."""
    crossing = Crossing(peer_id)
    crossing.opens(crossing.local)
    if confirmed:
        crossing.confirms(crossing.local)
    crossing.connects()
    assert crossing.ended(crossing.remote)
    assert not crossing.ended(crossing.local)
    crossing.confirms(crossing.local)
    assert crossing.arena.status().established
    crossing.arena.check()


@pytest.mark.parametrize("peer_id", [HIGHER, LOWER])
def test_rfc4271_6_8_a_connection_without_an_open_does_not_delay_the_other(peer_id: int) -> None:
    """The peer may know one connection only: the other continues when no message arrives."""
    crossing = Crossing(peer_id)
    crossing.connects()
    crossing.opens(crossing.remote)
    crossing.confirms(crossing.remote)
    assert crossing.arena.status().established == (peer_id == HIGHER)
    crossing.arena.wait(5)
    assert crossing.arena.status().established
    assert not crossing.ended(crossing.remote)
    assert crossing.ended(crossing.local)
    crossing.arena.check()


@pytest.mark.parametrize("graceful", [None, GracefulRestart(60)])
@pytest.mark.parametrize("asns", [(65001, 65002), (65002, 65001), (65001, 65001)])
@pytest.mark.parametrize("block", range(4))
def test_h27_crossing_connections_leave_exactly_one_in_any_order_of_arrival(
    block: int, asns: tuple[int, int], graceful: GracefulRestart | None
) -> None:
    for seed in range(block * 25, block * 25 + 25):
        network = Network(seed, latency=(0.0, 0.05))
        a, b = network.host("a", "10.0.0.1", asns[0]), network.host("b", "10.0.0.2", asns[1])
        a.peer(
            PeerConfig(name="b", address="10.0.0.2", peer_asn=asns[1], graceful_restart=graceful)
        )
        b.peer(
            PeerConfig(name="a", address="10.0.0.1", peer_asn=asns[0], graceful_restart=graceful)
        )
        network.run(3)
        assert a.status().established, (seed, a.status().reason, a.events)
        assert b.status().established, (seed, b.status().reason, b.events)
        network.run(60)
        assert a.status().flaps == b.status().flaps == 0, seed
        assert len(a.ends) == len(b.ends) == 1, seed
        (left,), (right,) = a.ends.values(), b.ends.values()
        assert left.other is right, seed
        # A collision is nothing that people have to hear of.
        assert not [e for e in a.events + b.events if isinstance(e, SessionError)], seed
