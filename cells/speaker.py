"""The speaker cell: the BGP speaker of this process, its events, health and metrics.

What the speaker says only flows out of here: into an observable, the health tree, the log and the
metrics. Labels of metrics are names that our own configuration gives, never text of a peer.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, assert_never

import msgspec
import structlog
from dependency_injector import providers
from dependency_injector.containers import DeclarativeContainer
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from reactivex import Observable
from reactivex.subject import Subject

from cells.hive import Cell, Health, Jobs, Lifecycle, Options, Signal, setting
from cells.metrics import Metrics
from speaker.api import (
    ESTABLISHED,
    CollectorChanged,
    ConnectionsRefused,
    Event,
    Fault,
    ListenChanged,
    PeerStatus,
    PrefixLimit,
    RecordingEnded,
    SessionError,
    StateChanged,
)
from speaker.iana import is_assigned
from speaker.server import Speaker
from statedb import Database, Index, Table

REFRESH = 0.1
"""Least seconds between two looks at all sessions for their table and health."""
STOP_TIMEOUT = 2.0
"""Seconds within which all sessions are closed."""

log = structlog.get_logger("waggle.speaker")


class SpeakerOptions(Options, frozen=True):
    """Options of the speaker cell."""

    record_file: Annotated[
        str | None,
        setting(
            "write every input of the speaker into this file, for waggle replay; none by default",
            flag="--record-file",
            metavar="PATH",
        ),
    ] = None
    record_limit: Annotated[
        int,
        msgspec.Meta(ge=1),
        setting("how large that file may become, in MiB", flag="--record-limit", metavar="MIB"),
    ] = 256


class SpeakerEvents:
    """What happens at sessions: to an observable, the health tree, the log, and counters."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._subject: Subject[Event] = Subject()
        self.transitions: Counter[tuple[str, str, str, str]] = Counter()
        """By instance, peer, old and new state."""
        self.notifications: Counter[tuple[str, str, bool, int, int]] = Counter()
        """By instance, peer, whether sent, code, subcode."""

    @property
    def observable(self) -> Observable[Event]:
        """Every event, in the loop's thread. Subscribers do no work of their own in it."""
        return self._subject

    def publish(self, event: Event) -> None:
        """Take one event from the speaker; never raises into it."""
        match event:
            case StateChanged():
                self._state_changed(event)
            case SessionError():
                self._session_error(event)
            case ListenChanged():
                self._listen_changed(event)
            case PrefixLimit():
                log.warning(
                    "prefix limit",
                    event_name="peer.prefix_limit",
                    instance=event.instance,
                    peer=event.peer,
                    family=str(event.family),
                    received=event.received,
                    limit=event.limit,
                    ended=event.ended,
                )
            case CollectorChanged():
                log.info(
                    "monitoring station",
                    event_name="collector.changed",
                    collector=event.name,
                    connected=event.connected,
                    reason=event.reason,
                )
            case ConnectionsRefused():
                log.warning(
                    "connections refused",
                    event_name="listener.refused",
                    instance=event.instance,
                    peer_address=event.address,
                    reason=event.reason,
                    count=event.count,
                )
            case RecordingEnded():
                log.warning(
                    "nothing more is recorded",
                    event_name="speaker.recording_ended",
                    reason=event.reason,
                )
            case Fault():
                log.error(
                    "fault",
                    event_name="speaker.fault",
                    instance=event.instance,
                    peer=event.peer,
                    where=event.where,
                    error=event.error,
                )
            case _:
                assert_never(event)
        self._subject.on_next(event)

    def _state_changed(self, event: StateChanged) -> None:
        self.transitions[event.instance, event.peer, event.old, event.new] += 1
        names = {
            "instance": event.instance,
            "peer": event.peer,
            "peer_address": event.address,
            "from": event.old,
            "to": event.new,
            "reason": event.reason or None,
        }
        if event.new == ESTABLISHED:
            log.info("session is up", event_name="peer.up", **names)
        elif event.old == ESTABLISHED:
            log.warning("session is down", event_name="peer.down", **names)
        else:
            log.debug("session changed state", event_name="peer.state", **names)

    def _session_error(self, event: SessionError) -> None:
        if not event.survived:
            # A peer can send any numbers: those that mean nothing are one label.
            known = is_assigned(event.code, event.subcode)
            code, subcode = (event.code, event.subcode) if known else (0, 0)
            self.notifications[event.instance, event.peer, event.sent, code, subcode] += 1
        log.warning(
            "session error",
            event_name="peer.error",
            instance=event.instance,
            peer=event.peer,
            peer_address=event.address,
            sent=event.sent,
            code=event.code,
            subcode=event.subcode,
            text=event.text,
            data=event.data or None,
            survived=event.survived or None,
        )

    def _listen_changed(self, event: ListenChanged) -> None:
        where = f"{event.address}:{event.port}"
        scope = self._health.scope(event.instance).scope(f"listener {where}")
        if event.error is None:
            scope.ok("listening")
            log.info(
                "listening",
                event_name="speaker.listening",
                instance=event.instance,
                address=event.address,
                port=event.port,
            )
        else:
            scope.degraded(event.error)
            log.error(
                "cannot listen",
                event_name="speaker.listen_failed",
                instance=event.instance,
                address=event.address,
                port=event.port,
                reason=event.error,
            )


def make_speaker(
    lifecycle: Lifecycle, health: Health, events: SpeakerEvents, options: SpeakerOptions
) -> Speaker:
    """Make the speaker and hook its start and stop."""
    # Jitter of timers and nothing secret: an ordinary generator is right.
    speaker = Speaker(
        rng=random.Random(),  # noqa: S311  jitter, no secret
        on_event=events.publish,
        # A node's packets are forwarded by its kernel while the agent is away, and whether there
        # was an agent before nobody knows: peers that have nothing of ours lose nothing by it.
        restarting=True,
        record=None if options.record_file is None else Path(options.record_file),
        record_limit=options.record_limit * 1024 * 1024,
    )

    async def start() -> None:
        await speaker.start()
        health.ok("started")

    async def stop() -> None:
        await speaker.stop(timeout=STOP_TIMEOUT)
        health.stopped("all sessions closed")

    lifecycle.append("speaker", start=start, stop=stop, stop_timeout=STOP_TIMEOUT + 0.5)
    return speaker


class Session(msgspec.Struct, frozen=True):
    """Row of the table ``sessions``: how one session is."""

    instance: str
    peer: str
    address: str | None
    state: str
    reason: str
    """Why it is not Established; empty when it is."""
    since: float
    """When it entered its state, as Unix time."""


class Sessions:
    """The sessions as a table and in the health tree, brought up to date after events."""

    def __init__(
        self,
        database: Database,
        speaker: Speaker,
        events: SpeakerEvents,
        health: Health,
        jobs: Jobs,
    ) -> None:
        self.table: Table[Session] = database.table(
            "sessions", primary=Index("key", key=lambda row: (row.instance, row.peer))
        )
        self._database = database
        self._speaker = speaker
        self._signal = Signal(events.observable)
        self._health = health
        self._instances: set[str] = set()
        jobs.add("sessions", self._run)

    async def _run(self) -> None:
        with self._signal:
            while True:
                await self._signal.wait()
                self.refresh()
                # For people and status, not for routes: a flapping thousand of sessions shall
                # not cost a pass each.
                await asyncio.sleep(REFRESH)

    def poke(self) -> None:
        """Look soon, though nothing has happened at a session (a peer was added or removed)."""
        self._signal.raise_flag()

    def refresh(self) -> None:
        """Compare the speaker's sessions with the table, and write what differs."""
        self._forget_instances()
        found = {
            (status.instance, status.name): Session(
                status.instance,
                status.name,
                status.address,
                status.state,
                status.reason,
                round(status.since, 3),
            )
            for status in self._speaker.peers()
        }
        snapshot = self._database.snapshot()
        known = {(row.instance, row.peer): row for row in self.table.all(snapshot)}
        changed = [row for key, row in found.items() if not _same(known.get(key), row)]
        gone = [key for key in known if key not in found]
        if not changed and not gone:
            return
        with self._database.write(self.table) as txn:
            for row in changed:
                self.table.upsert(txn, row)
            for key in gone:
                self.table.delete(txn, key)
        for row in changed:
            scope = self._health.scope(row.instance).scope(row.peer)
            if row.state == ESTABLISHED:
                scope.ok(ESTABLISHED)
            else:
                scope.degraded(f"{row.state}: {row.reason}")
        for instance, peer in gone:
            self._health.scope(instance).scope(peer).remove()

    def _forget_instances(self) -> None:
        present = {status.name for status in self._speaker.instances()}
        for name in self._instances - present:
            self._health.scope(name).remove()
        self._instances = present


def _same(old: Session | None, new: Session) -> bool:
    """Compare but for the rounding of a time that was translated from another clock."""
    if old is None or abs(old.since - new.since) >= 0.5:
        return False
    return msgspec.structs.replace(old, since=new.since) == new


class SpeakerMetrics:
    """The sessions' metrics, read when somebody scrapes."""

    def __init__(self, metrics: Metrics, speaker: Speaker, events: SpeakerEvents) -> None:
        self._speaker = speaker
        self._events = events
        metrics.collect(self.collect)

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics of all sessions."""
        peers = list(self._speaker.peers())
        yield from _sessions(peers)
        yield from _routes(peers)
        yield from _counters(peers, self._events)
        refused = CounterMetricFamily(
            "waggle_bgp_connections_refused",
            "Connections of nobody that is known, and of neighbours too many.",
            labels=["instance"],
        )
        for instance in self._speaker.instances():
            refused.add_metric([instance.name], instance.refused)
        yield refused


PEER_LABELS = ["instance", "peer", "peer_address"]


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
        "Since when the session has been Established.",
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
        "Routes told to the peer.",
        labels=[*PEER_LABELS, "family"],
    )
    received = GaugeMetricFamily(
        "waggle_bgp_received_routes",
        "Routes of the peer, by what became of them.",
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
        "waggle_bgp_session_drops", "Losses of an Established session.", labels=PEER_LABELS
    )
    incoming = CounterMetricFamily(
        "waggle_bgp_messages_received", "BGP messages received.", labels=PEER_LABELS
    )
    outgoing = CounterMetricFamily(
        "waggle_bgp_messages_sent", "BGP messages sent.", labels=PEER_LABELS
    )
    queue = GaugeMetricFamily(
        "waggle_bgp_send_queue_bytes",
        "Written and not yet taken by the kernel.",
        labels=PEER_LABELS,
    )
    for peer in peers:
        drops.add_metric(_labels(peer), peer.flaps)
        incoming.add_metric(_labels(peer), peer.messages_received)
        outgoing.add_metric(_labels(peer), peer.messages_sent)
        queue.add_metric(_labels(peer), peer.queued_octets)
    transitions = CounterMetricFamily(
        "waggle_bgp_session_transitions",
        "Changes of state.",
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


class SpeakerContainer(DeclarativeContainer):
    """The graph of the speaker cell."""

    lifecycle = providers.Dependency(instance_of=Lifecycle)
    health = providers.Dependency(instance_of=Health)
    metrics = providers.Dependency(instance_of=Metrics)
    database = providers.Dependency(instance_of=Database)
    jobs = providers.Dependency(instance_of=Jobs)
    options = providers.Dependency(instance_of=SpeakerOptions)
    speaker_events = providers.Singleton(SpeakerEvents, health)
    speaker = providers.Singleton(make_speaker, lifecycle, health, speaker_events, options)
    _metrics = providers.Singleton(SpeakerMetrics, metrics, speaker, speaker_events)
    sessions = providers.Singleton(Sessions, database, speaker, speaker_events, health, jobs)
    invokes = providers.List(speaker, sessions, _metrics)


CELL = Cell(
    name="speaker",
    description="Speaks BGP to the peers.",
    container=SpeakerContainer,
    options=SpeakerOptions,
)
