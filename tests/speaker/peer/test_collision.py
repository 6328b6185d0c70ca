"""RFC 4271 section 6.8: two connections, one survivor, the same one on both ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.api import GracefulRestart, PeerConfig, SessionError
from speaker.peer.collision import keep_outgoing
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


@pytest.mark.parametrize("graceful", [None, GracefulRestart(60)])
@pytest.mark.parametrize("asns", [(65001, 65002), (65002, 65001), (65001, 65001)])
@pytest.mark.parametrize("block", range(4))
def test_h27_crossing_connections_leave_exactly_one_whatever_the_order_of_arrival(
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
