"""Metrics of BFD sessions, read at each scrape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from reconcilers.bfd_session import UNKNOWN, BfdCounters, BfdProcess, BfdSession
from reconcilers.intent_tables import IntentTables
from statedb import Database

LABELS: Final = ("instance", "peer", "peer_address")
MICROSECONDS: Final = 1_000_000

Rows = Sequence[tuple[BfdSession, BfdCounters | None]]


class BfdMetrics:
    """Collects the metrics of the sessions and of their process."""

    def __init__(self, database: Database, intent: IntentTables) -> None:
        self._database = database
        self._intent = intent

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics of all sessions."""
        snapshot, intent = self._database.snapshot(), self._intent
        rows = [
            (row, intent.bfd_counters.get(snapshot, (row.instance, row.peer)))
            for row in intent.bfd_sessions.all(snapshot)
        ]
        process = next(intent.bfd_process.all(snapshot), None)
        yield from _states(rows, is_known=process is None or process.connected)
        yield from _counts(rows)
        yield from _of_process(process)


def _labels(row: BfdSession) -> list[str]:
    return [row.instance, row.peer, row.address]


def _states(rows: Rows, *, is_known: bool) -> Iterator[Metric]:
    """Yield the states; ``is_known``: without a connection sessions go on, and are not down."""
    up = GaugeMetricFamily("waggle_bfd_session_up", "1 while the session is Up.", labels=LABELS)
    state = GaugeMetricFamily(
        "waggle_bfd_session_state",
        "1 for the state that the session is in.",
        labels=[*LABELS, "state"],
    )
    detection = GaugeMetricFamily(
        "waggle_bfd_detection_time_seconds",
        "Time without a packet after which the path is down.",
        labels=LABELS,
    )
    for row, _ in rows:
        if is_known:
            up.add_metric(_labels(row), row.up)
        state.add_metric([*_labels(row), row.state], 1)
        detection.add_metric(_labels(row), row.detection_time / MICROSECONDS)
    yield from (up, state, detection)


def _counts(rows: Rows) -> Iterator[Metric]:
    losses = CounterMetricFamily(
        "waggle_bfd_session_losses", "How often the session was Up and is not.", labels=LABELS
    )
    incoming = CounterMetricFamily(
        "waggle_bfd_packets_received", "Control packets received.", labels=LABELS
    )
    outgoing = CounterMetricFamily(
        "waggle_bfd_packets_sent", "Control packets sent.", labels=LABELS
    )
    returned = CounterMetricFamily(
        "waggle_bfd_echo_packets_received", "Echo packets that the peer returned.", labels=LABELS
    )
    echoes = CounterMetricFamily(
        "waggle_bfd_echo_packets_sent", "Echo packets sent.", labels=LABELS
    )
    gap = GaugeMetricFamily(
        "waggle_bfd_longest_gap_seconds",
        "The longest time between two received packets while Up.",
        labels=LABELS,
    )
    for row, counters in rows:
        # 0 in between would be a reset, and all losses would be new ones.
        if row.state != UNKNOWN:
            losses.add_metric(_labels(row), _losses(row))
        if counters is not None:
            incoming.add_metric(_labels(row), counters.packets_received)
            outgoing.add_metric(_labels(row), counters.packets_sent)
            returned.add_metric(_labels(row), counters.echoes_received)
            echoes.add_metric(_labels(row), counters.echoes_sent)
            gap.add_metric(_labels(row), counters.longest_gap / MICROSECONDS)
    yield from (losses, incoming, outgoing, returned, echoes, gap)


def _losses(row: BfdSession) -> int:
    """Return how often the session was lost, as the process knows."""
    return row.ups - row.up


def _of_process(process: BfdProcess | None) -> Iterator[Metric]:
    connected = GaugeMetricFamily(
        "waggle_bfd_connected", "1 while the agent is connected to waggle-bfd."
    )
    realtime = GaugeMetricFamily("waggle_bfd_realtime", "1 if waggle-bfd has real-time scheduling.")
    lateness = GaugeMetricFamily(
        "waggle_bfd_lateness_seconds", "The latest that waggle-bfd met a deadline."
    )
    discarded = CounterMetricFamily(
        "waggle_bfd_packets_discarded", "Received packets without effect.", labels=["reason"]
    )
    if process is not None:
        connected.add_metric([], process.connected)
        realtime.add_metric([], process.realtime)
        lateness.add_metric([], process.lateness / MICROSECONDS)
        for reason, packets in process.discarded:
            discarded.add_metric([reason], packets)
    yield from (connected, realtime, lateness, discarded)
