"""Metrics of the sessions, read at each scrape.

Labels are names of the configuration, never text of a peer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import asdict
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from cells.observability.exposition import Collected
from cells.speaker.events import SpeakerEvents
from speaker.api import MessageCounts, PeerStatus, SpeakerPort

PEER_LABELS: Final = ("instance", "peer", "peer_address")


class SpeakerMetrics:
    """Collects the metrics of the sessions."""

    def __init__(self, speaker: SpeakerPort, events: SpeakerEvents) -> None:
        self._speaker = speaker
        self._events = events

    def collect(self) -> Iterable[Collected]:
        """Yield the metrics of all sessions, which are read in slices."""
        sessions = SessionMetrics()
        for slice_ in self._speaker.peer_slices():
            for peer in slice_:
                sessions.add(peer)
            yield None
        yield from sessions.families()
        yield from _of_events(self._events)
        refused = CounterMetricFamily(
            "waggle_bgp_connections_refused",
            "Connections from unknown addresses, or beyond a limit.",
            labels=["instance"],
        )
        for instance in self._speaker.instances():
            refused.add_metric([instance.name], instance.refused)
        yield refused


class SessionMetrics:
    """The metrics of sessions, which are added one by one."""

    def __init__(self) -> None:
        self._up = _gauge(
            "session_up", "1 while the session is Established.", "peer_asn", "local_asn"
        )
        self._state = _gauge("session_state", "1 for the state that the session is in.", "state")
        self._since = _gauge(
            "session_established_timestamp_seconds", "When the session was Established."
        )
        self._drops = _counter("session_drops", "Established sessions that were lost.")
        self._incoming = _counter("messages_received", "BGP messages received, by type.", "type")
        self._outgoing = _counter("messages_sent", "BGP messages sent, by type.", "type")
        self._queue = _gauge(
            "send_queue_bytes", "Octets written and not yet accepted by the kernel."
        )
        self._advertised = _gauge("advertised_routes", "Routes advertised to the peer.", "family")
        self._received = _gauge(
            "received_routes",
            "Routes received from the peer, by result of the import.",
            "family",
            "status",
        )
        self._stale = _gauge(
            "stale_routes", "Routes that are kept during a restart of the peer.", "family"
        )
        self._malformed = _gauge(
            "malformed_updates", "UPDATEs of this session that cost their routes only (RFC 7606)."
        )

    def add(self, peer: PeerStatus) -> None:
        """Add the samples of a session."""
        labels = [peer.instance, peer.name, peer.address or ""]
        up = peer.established
        self._up.add_metric([*labels, str(peer.peer_asn), str(peer.local_asn)], up)
        self._state.add_metric([*labels, peer.state], 1)
        self._drops.add_metric(labels, peer.flaps)
        _add_messages(self._incoming, labels, peer.received_by_type)
        _add_messages(self._outgoing, labels, peer.sent_by_type)
        self._queue.add_metric(labels, peer.queued_octets)
        self._malformed.add_metric(labels, peer.malformed_updates)
        if up:
            self._since.add_metric(labels, peer.since)
        for entry in peer.families:
            of_family = [*labels, str(entry.family)]
            if up:
                self._advertised.add_metric(of_family, entry.advertised)
                self._received.add_metric([*of_family, "accepted"], entry.accepted)
                self._received.add_metric([*of_family, "filtered"], entry.received - entry.accepted)
            if entry.stale:
                self._stale.add_metric(of_family, entry.stale)

    def families(self) -> Iterator[Metric]:
        """Yield the metrics."""
        yield from (self._up, self._state, self._since, self._drops)
        yield from (self._incoming, self._outgoing, self._queue, self._malformed)
        yield from (self._advertised, self._received, self._stale)


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"waggle_bgp_{name}", text, labels=[*PEER_LABELS, *labels])


def _counter(name: str, text: str, *labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"waggle_bgp_{name}", text, labels=[*PEER_LABELS, *labels])


def _add_messages(
    metric: CounterMetricFamily, labels: Sequence[str], counts: MessageCounts
) -> None:
    for name, count in asdict(counts).items():
        metric.add_metric([*labels, name], count)


def _of_events(events: SpeakerEvents) -> Iterator[Metric]:
    transitions = CounterMetricFamily(
        "waggle_bgp_session_transitions",
        "State changes of the session.",
        labels=["instance", "peer", "from", "to"],
    )
    sent = CounterMetricFamily(
        "waggle_bgp_notifications_sent",
        "NOTIFICATIONs sent.",
        labels=["instance", "peer", "code", "subcode"],
    )
    got = CounterMetricFamily(
        "waggle_bgp_notifications_received",
        "NOTIFICATIONs received.",
        labels=["instance", "peer", "code", "subcode"],
    )
    for (instance, name), counts in events.counts.items():
        for (old, new), count in counts.transitions.items():
            transitions.add_metric([instance, name, old, new], count)
        for (was_sent, code, subcode), count in counts.notifications.items():
            family = sent if was_sent else got
            family.add_metric([instance, name, str(code), str(subcode)], count)
    yield from (transitions, sent, got)
