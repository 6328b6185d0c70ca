"""Metrics of the sessions, read at each scrape.

Labels are names of the configuration, never text of a peer.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from cells.speaker.events import SpeakerEvents
from speaker.api import PeerStatus, SpeakerPort

PEER_LABELS = ["instance", "peer", "peer_address"]


class SpeakerMetrics:
    """Collects the metrics of the sessions."""

    def __init__(self, speaker: SpeakerPort, events: SpeakerEvents) -> None:
        self._speaker = speaker
        self._events = events

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics of all sessions."""
        peers = list(self._speaker.peers())
        yield from _sessions(peers)
        yield from _routes(peers)
        yield from _counters(peers, self._events)
        refused = CounterMetricFamily(
            "waggle_bgp_connections_refused",
            "Connections from unknown addresses, or beyond a limit.",
            labels=["instance"],
        )
        for instance in self._speaker.instances():
            refused.add_metric([instance.name], instance.refused)
        yield refused


def _labels(peer: PeerStatus) -> list[str]:
    return [peer.instance, peer.name, peer.address or ""]


def _sessions(peers: Iterable[PeerStatus]) -> Iterable[Metric]:
    up = GaugeMetricFamily(
        "waggle_bgp_session_up",
        "1 while the session is Established.",
        labels=[*PEER_LABELS, "peer_asn", "local_asn"],
    )
    state = GaugeMetricFamily(
        "waggle_bgp_session_state",
        "1 for the state that the session is in.",
        labels=[*PEER_LABELS, "state"],
    )
    since = GaugeMetricFamily(
        "waggle_bgp_session_established_timestamp_seconds",
        "When the session was Established.",
        labels=PEER_LABELS,
    )
    for peer in peers:
        labels = _labels(peer)
        up.add_metric([*labels, str(peer.peer_asn), str(peer.local_asn)], peer.established)
        state.add_metric([*labels, peer.state], 1)
        if peer.established:
            since.add_metric(labels, peer.since)
    return up, state, since


def _routes(peers: Iterable[PeerStatus]) -> Iterable[Metric]:
    advertised = GaugeMetricFamily(
        "waggle_bgp_advertised_routes",
        "Routes advertised to the peer.",
        labels=[*PEER_LABELS, "family"],
    )
    received = GaugeMetricFamily(
        "waggle_bgp_received_routes",
        "Routes received from the peer, by result of the import.",
        labels=[*PEER_LABELS, "family", "status"],
    )
    for peer in peers:
        if not peer.established:
            continue
        for entry in peer.families:
            labels = [*_labels(peer), str(entry.family)]
            advertised.add_metric(labels, entry.advertised)
            received.add_metric([*labels, "accepted"], entry.accepted)
            received.add_metric([*labels, "filtered"], entry.received - entry.accepted)
    return advertised, received


def _counters(peers: Iterable[PeerStatus], events: SpeakerEvents) -> Iterable[Metric]:
    drops = CounterMetricFamily(
        "waggle_bgp_session_drops", "Established sessions that were lost.", labels=PEER_LABELS
    )
    incoming = CounterMetricFamily(
        "waggle_bgp_messages_received", "BGP messages received.", labels=PEER_LABELS
    )
    outgoing = CounterMetricFamily(
        "waggle_bgp_messages_sent", "BGP messages sent.", labels=PEER_LABELS
    )
    queue = GaugeMetricFamily(
        "waggle_bgp_send_queue_bytes",
        "Octets written and not yet accepted by the kernel.",
        labels=PEER_LABELS,
    )
    for peer in peers:
        drops.add_metric(_labels(peer), peer.flaps)
        incoming.add_metric(_labels(peer), peer.messages_received)
        outgoing.add_metric(_labels(peer), peer.messages_sent)
        queue.add_metric(_labels(peer), peer.queued_octets)
    transitions = CounterMetricFamily(
        "waggle_bgp_session_transitions",
        "State changes of the session.",
        labels=["instance", "peer", "from", "to"],
    )
    for (instance, name, old, new), count in events.transitions.items():
        transitions.add_metric([instance, name, old, new], count)
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
    for (instance, name, was_sent, code, subcode), count in events.notifications.items():
        family = sent if was_sent else got
        family.add_metric([instance, name, str(code), str(subcode)], count)
    return drops, incoming, outgoing, queue, transitions, sent, got
