"""The variables of RFC 5880 section 6.8.1 that a session has of its neighbor."""

from __future__ import annotations

from typing import Final, NamedTuple

from speaker.bfd.packet import Packet
from speaker.bfd.session_values import Saved, State


class Neighbor(NamedTuple):
    """The neighbor, as its last packet had it. Intervals in microseconds."""

    discriminator: int
    """0: unknown, before the first packet and after the detection time."""
    state: State
    diagnostic: int
    min_rx: int
    """bfd.RemoteMinRxInterval; 0: the neighbor shall be sent no periodic packets."""
    desired_min_tx: int
    detect_multiplier: int
    min_echo_rx: int
    """0: the neighbor returns no echo packets."""
    independent: bool
    demand: bool


UNKNOWN: Final = Neighbor(0, State.DOWN, 0, 1, 0, 0, 0, independent=False, demand=False)
"""Before the first packet."""


def neighbor_of(packet: Packet) -> Neighbor:
    """Return what a packet has of the neighbor."""
    return Neighbor(
        packet.my_discriminator,
        packet.state,
        packet.diagnostic,
        packet.required_min_rx,
        packet.desired_min_tx,
        packet.detect_multiplier,
        packet.required_min_echo_rx,
        packet.independent,
        packet.demand,
    )


def neighbor_of_saved(saved: Saved) -> Neighbor:
    """Return what another process has saved of the neighbor; demand mode is in its next packet."""
    return Neighbor(
        saved.remote_discriminator,
        saved.remote_state,
        saved.remote_diagnostic,
        saved.remote_min_rx,
        saved.remote_desired_min_tx,
        saved.remote_detect_multiplier,
        saved.remote_min_echo_rx,
        saved.remote_independent,
        demand=False,
    )
