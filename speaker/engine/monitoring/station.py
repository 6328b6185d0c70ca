"""One monitoring station: its connection, its queue, and the backoff between attempts.

The connection is opened from this side, with exponential backoff (RFC 7854 section 3.2); octets that
a station sends are discarded. A station that does not read is disconnected and gets all tables when
it is connected again: no session ever waits for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol, final

from speaker.api import BmpCollector, CollectorChanged, CollectorStatus
from speaker.bmp import Initiation, InitiationTlv, Termination, TerminationReason, Tlv, encode
from speaker.engine.monitoring.monitored_peers import MonitoredPeer
from speaker.peer.actions import Close, Connect, Write
from speaker.peer.engine_context import EngineContext, Timer

MAX_QUEUED_FOR_SLICE: Final = 256 * 1024
"""Octets; while more wait to be sent, no further slice of a table is encoded."""
SEND_HOLD_SECONDS: Final = 120.0
"""The time in which a station has to read some of the octets that wait for it."""
STABLE_SECONDS: Final = 60.0
"""A connection that lasted this long resets the retry backoff."""
MAX_INPUT: Final = 64 * 1024
"""Octets; BMP stations send nothing, and are disconnected if they send more."""


class SlicedJob(NamedTuple):
    """A table dump, or statistics, that is encoded in slices."""

    peer: MonitoredPeer | None
    """Its end cancels the job; None for statistics."""
    table: bool
    """Whether the station is not synchronized before the job is done."""
    slices: Iterator[bytes]


class StationOwner(Protocol):
    """The exporter, as a station uses it."""

    connections: dict[int, Station]
    """Connection number -> station."""

    def stations_changed(self) -> None:
        """Update the stations that are connected."""

    def report_statistics(self, station: Station) -> None:
        """Queue Statistics Reports for a station."""


@final
class Station:
    """A station and its connection (`speaker.peer.engine_context.TimerOwner`)."""

    __slots__ = (
        "_context",
        "_discarded",
        "_failures",
        "_owner",
        "buffer",
        "config",
        "connection",
        "connections",
        "jobs",
        "octets_sent",
        "queued",
        "reason",
        "since",
        "streaming",
    )

    def __init__(self, context: EngineContext, owner: StationOwner, config: BmpCollector) -> None:
        self._context = context
        self._owner = owner
        self.config = config
        self.connection: int | None = None
        self.streaming = False
        """Whether it is connected, and every event is sent to it."""
        self.buffer: list[bytes] = []
        """Messages to send after the input that is being processed."""
        self.jobs: deque[SlicedJob] = deque()
        self.queued = 0
        self.octets_sent = 0
        self.connections = 0
        self.since = context.now
        self.reason = "connecting"
        self._failures = 0
        self._discarded = 0

    @property
    def where(self) -> tuple[str, str | None]:
        """No instance, and the station's name (`TimerOwner`)."""
        return ("", self.config.name)

    # ------------------------------------------------------------- connection

    def connect(self) -> None:
        """Open a connection."""
        config = self.config
        self.connection = self._context.new_connection()
        self._owner.connections[self.connection] = self
        self._context.out.append(
            Connect(
                connection=self.connection,
                instance=None,
                peer=config.name,
                address=config.address,
                port=config.port,
                interface=None,
                local_address=config.local_address,
                local_port=None,
                ttl=0,
                min_ttl=0,
                password=None,
            )
        )

    def connected(self) -> None:
        """Send Initiation; the exporter continues with the present peers and tables."""
        self.streaming = True
        self._owner.stations_changed()
        self.since = self._context.now
        self.reason = ""
        self.connections += 1
        self.octets_sent = self.queued = self._discarded = 0
        config = self.config
        self.buffer.append(
            encode(
                Initiation(
                    (
                        Tlv(InitiationTlv.SYSTEM_DESCRIPTION, config.system_description.encode()),
                        Tlv(InitiationTlv.SYSTEM_NAME, config.system_name.encode()),
                    )
                )
            )
        )
        self._start_statistics()
        self._report()

    def failed(self, reason: str) -> None:
        """Handle the loss of the connection, or a failed attempt, and retry after a pause."""
        was = self.streaming
        if was and self._context.now - self.since >= STABLE_SECONDS:
            self._failures = 0
        self._forget()
        self.since = self._context.now
        self.reason = reason
        config = self.config
        pause = min(config.retry_time * 2.0 ** min(self._failures, 16), config.longest_retry_time)
        self._failures += 1
        self._context.timers.start(
            (self, Timer.COLLECTOR_RETRY), self._context.now + self._context.jitter(pause)
        )
        if was:
            self._report()

    def drop(self, reason: str) -> None:
        """Disconnect without a Termination, and retry after a pause."""
        if self.connection is not None:
            self._context.out.append(Close(self.connection, abort=True))
        self.failed(reason)

    def close(self, why: TerminationReason) -> None:
        """Close the connection for good, with a Termination (RFC 7854 section 4.5)."""
        self._context.timers.stop((self, Timer.COLLECTOR_RETRY))
        if self.streaming:
            self.buffer.append(encode(Termination.because(why)))
            self.emit()
        connection = self.connection
        self._forget()
        if connection is not None:
            self._context.out.append(Close(connection))
        self.reason = "closed"

    def _forget(self) -> None:
        if self.connection is not None:
            self._owner.connections.pop(self.connection, None)
            self.connection = None
        self.streaming = False
        self._owner.stations_changed()
        self.buffer.clear()
        self.jobs.clear()
        self.queued = 0
        for timer in (Timer.STATISTICS, Timer.SEND_HOLD):
            self._context.timers.stop((self, timer))

    def _report(self) -> None:
        config = self.config
        self._context.report(
            CollectorChanged(
                name=config.name,
                address=config.address,
                port=config.port,
                connected=self.streaming,
                reason=self.reason,
            )
        )

    # ------------------------------------------------------------------ octets

    def emit(self) -> None:
        """Send the collected messages."""
        if self.buffer and self.connection is not None:
            octets = b"".join(self.buffer)
            self.buffer.clear()
            if octets:
                self.octets_sent += len(octets)
                self._context.out.append(Write(self.connection, (octets,)))

    def received(self, octets: int) -> None:
        """Count octets from the station, which are discarded."""
        self._discarded += octets
        if self._discarded > MAX_INPUT:
            self.drop("the station sent octets, which BMP does not provide for")

    def queue_changed(self, octets: int) -> None:
        """Supervise the octets that the station does not read."""
        progress = octets < self.queued or not self.queued
        self.queued = octets
        if octets > self.config.queue_limit:
            self.drop(f"the station does not read: {octets} octets were waiting")
        elif not octets:
            self._context.timers.stop((self, Timer.SEND_HOLD))
        elif progress:
            self._context.timers.start(
                (self, Timer.SEND_HOLD), self._context.now + SEND_HOLD_SECONDS
            )

    # -------------------------------------------------------------------- work

    @property
    def ready(self) -> bool:
        """Whether a slice is due, and there is room in the queue."""
        return bool(self.jobs) and self.queued < MAX_QUEUED_FOR_SLICE

    def work(self) -> None:
        """Encode one slice."""
        octets = next(self.jobs[0].slices, None)
        if octets is None:
            self.jobs.popleft()
        elif octets:
            self.buffer.append(octets)

    def cancel_jobs(self, peer: MonitoredPeer) -> None:
        """Cancel the jobs of a monitored peer that was removed."""
        if any(job.peer is peer for job in self.jobs):
            self.jobs = deque(job for job in self.jobs if job.peer is not peer)

    def expired(self, timer: Timer, due: float) -> None:
        """Handle a timer (`TimerOwner`)."""
        del due
        match timer:
            case Timer.COLLECTOR_RETRY:
                self.reason = "connecting"
                self.connect()
            case Timer.SEND_HOLD:
                self.drop(f"the station has read nothing for {SEND_HOLD_SECONDS:.0f}s")
            case _:
                self._owner.report_statistics(self)
                self._start_statistics()

    def _start_statistics(self) -> None:
        if self.config.statistics_interval:
            self._context.timers.start(
                (self, Timer.STATISTICS), self._context.now + self.config.statistics_interval
            )

    # -------------------------------------------------------------------- view

    def status(self) -> CollectorStatus:
        """Return the status; ``since`` is on the core's clock, in seconds."""
        due = self._context.timers.deadline((self, Timer.COLLECTOR_RETRY))
        return CollectorStatus(
            name=self.config.name,
            address=self.config.address,
            port=self.config.port,
            connected=self.streaming,
            reason=self.reason,
            since=self.since,
            synchronized=self.streaming and not any(job.table for job in self.jobs),
            retry_in=None if due is None else max(0.0, due - self._context.now),
            octets_sent=self.octets_sent,
            queued_octets=self.queued,
            connections=self.connections,
        )
