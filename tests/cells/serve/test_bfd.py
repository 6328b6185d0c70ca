"""BFD sessions of an agent as items of the API."""

from __future__ import annotations

from cells.api.model import BfdIntervalsItem
from cells.serve.bfd import bfd_item
from reconcilers.bfd_session import BfdCounters, BfdProcess, BfdSession


def test_what_is_unknown_is_absent() -> None:
    item = bfd_item("n", BfdSession(instance="i", peer="p"), None, None)
    assert (item.state, item.remote_state, item.remote_independent) == ("Unknown", None, None)
    assert (item.local_intervals, item.remote_intervals) == (None, None)
    assert (item.transmit_interval_seconds, item.detection_seconds) == (None, None)
    assert (item.packets_sent, item.longest_gap_seconds, item.lateness_seconds) == (None,) * 3
    assert (item.since_time, item.minimum_ttl, item.address) == (None, None, None)


def test_times_are_seconds() -> None:
    row = BfdSession(
        instance="i",
        peer="p",
        multihop=True,
        minimum_ttl=250,
        state="Up",
        since=1_700_000_000.7,
        remote_discriminator=3,
        desired_min_tx=300_000,
        required_min_rx=50_000,
        detect_multiplier=3,
        transmit_interval=500_000,
        detection_time=1_200_000,
    )
    counters = BfdCounters(instance="i", peer="p", packets_sent=4, longest_gap=301_500)
    item = bfd_item("n", row, counters, BfdProcess(name="b", connected=True, lateness=1100))
    assert item.local_intervals == BfdIntervalsItem(
        transmit_seconds=0.3, receive_seconds=0.05, detect_multiplier=3
    )
    assert (item.transmit_interval_seconds, item.detection_seconds) == (0.5, 1.2)
    assert (item.longest_gap_seconds, item.lateness_seconds) == (0.3015, 0.0011)
    assert (item.packets_sent, item.minimum_ttl, item.remote_independent) == (4, 250, False)
