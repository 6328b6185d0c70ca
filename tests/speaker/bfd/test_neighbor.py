"""The variables of the neighbor, from a packet and from another process."""

from __future__ import annotations

from speaker.bfd.neighbor import UNKNOWN, neighbor_of, neighbor_of_saved
from speaker.bfd.session_values import Settings, State
from tests.speaker.bfd.build import Pair
from tests.speaker.bfd.test_packet import PACKET


def test_rfc5880_6_8_1_an_unknown_neighbor_has_the_first_values() -> None:
    assert (UNKNOWN.discriminator, UNKNOWN.state, UNKNOWN.min_rx) == (0, State.DOWN, 1)
    assert not UNKNOWN.demand


def test_a_packet_has_all_variables_of_the_neighbor() -> None:
    neighbor = neighbor_of(PACKET._replace(demand=True))
    assert neighbor.discriminator == PACKET.my_discriminator
    assert (neighbor.min_rx, neighbor.desired_min_tx, neighbor.min_echo_rx) == (
        PACKET.required_min_rx,
        PACKET.desired_min_tx,
        PACKET.required_min_echo_rx,
    )
    assert (neighbor.state, neighbor.detect_multiplier) == (PACKET.state, PACKET.detect_multiplier)
    assert neighbor.demand


def test_a_saved_session_has_its_neighbor() -> None:
    pair = Pair(Settings(), Settings())
    pair.run(5_000_000)
    session = pair.left.session
    assert session.neighbor.state is State.UP
    assert neighbor_of_saved(session.saved()) == session.neighbor
