"""Events of the speaker, published to an observable, the health tree, the log and counters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import assert_never

import structlog
from reactivex import Observable
from reactivex.subject import Subject

from cells.hive import Health
from resources.streams import isolated
from speaker.api import (
    ESTABLISHED,
    CollectorChanged,
    ConnectionsRefused,
    Event,
    Fault,
    ListenChanged,
    PrefixLimit,
    RecordingEnded,
    RouteLeftOut,
    SessionError,
    StateChanged,
)
from speaker.iana import is_assigned
from speaker.server import MemoryRelease

log = structlog.get_logger("waggle.speaker")


class PeerCounts:
    """Counts NOTIFICATIONs and transitions of a peer's sessions since it was configured."""

    __slots__ = ("notifications", "transitions")

    def __init__(self) -> None:
        self.transitions: Counter[tuple[str, str]] = Counter()
        """By old and new state."""
        self.notifications: Counter[tuple[bool, int, int]] = Counter()
        """By whether sent, code, subcode."""


class SpeakerEvents:
    """Receives the speaker's events and publishes them."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._subject: Subject[Event] = Subject()
        self._memory = MemoryRelease()
        self.counts: defaultdict[tuple[str, str], PeerCounts] = defaultdict(PeerCounts)
        """By instance and peer, until `forget`."""

    @property
    def observable(self) -> Observable[Event]:
        """Every event, in the loop's thread; subscribers are isolated from each other."""
        return isolated(self._subject)

    def forget(self, peers: Iterable[tuple[str, str]]) -> None:
        """Forget the counts of peers that are removed: dynamic neighbours come and go."""
        for peer in peers:
            self.counts.pop(peer, None)

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
                    "peer exceeds its prefix limit"
                    if event.received > event.limit
                    else "peer is near its prefix limit",
                    event_name="peer.prefix_limit",
                    instance=event.instance,
                    peer=event.peer,
                    family=str(event.family),
                    received=event.received,
                    limit=event.limit,
                    ended=event.ended,
                )
            case RouteLeftOut():
                log.warning(
                    "route is not advertised",
                    event_name="peer.route_left_out",
                    instance=event.instance,
                    peers=event.peers,
                    family=str(event.family),
                    prefix=event.prefix,
                    count=event.count,
                    reason=event.reason,
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
                    "recording ended",
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
        counts = self.counts[event.instance, event.peer]
        counts.transitions[event.old, event.new] += 1
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
            self._memory.session_ended(event.routes)
        else:
            log.debug("session changed state", event_name="peer.state", **names)

    def _session_error(self, event: SessionError) -> None:
        if not event.survived:
            # A peer can send any numbers: unassigned numbers are one label.
            known = is_assigned(event.code, event.subcode)
            code, subcode = (event.code, event.subcode) if known else (0, 0)
            counts = self.counts[event.instance, event.peer]
            counts.notifications[event.sent, code, subcode] += 1
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
