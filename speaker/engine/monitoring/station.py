"""One monitoring station: its connection, what waits to be sent, and the pauses between attempts.

We connect, with exponential back-off (RFC 7854 section 3.2); what a station says is thrown away. A
station that does not read is disconnected, and told everything anew when it is back: nothing of a
session ever waits for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, final

from speaker.api import BmpCollector, CollectorChanged, CollectorStatus
from speaker.bmp import Initiation, InitiationTlv, Termination, TerminationReason, Tlv, encode
from speaker.peer.actions import Close, Connect, Write
from speaker.peer.engine_context import EngineContext, Timer

if TYPE_CHECKING:
    from speaker.engine.monitoring.exporter import Exporter
    from speaker.engine.monitoring.monitored_peers import MonitoredPeer

PATIENCE: Final = 256 * 1024
"""While more octets wait than these, no further slice of a table is made."""
STALLED: Final = 120.0
"""Seconds in which a station has to read something of what waits for it."""
STEADY: Final = 60.0
"""A connection that has lasted so many seconds makes the next pause a short one again."""
MAX_INPUT: Final = 64 * 1024
"""A station has nothing to say; one that says more than so many octets is disconnected."""


class SlicedJob(NamedTuple):
    """Work that is done in slices."""

    subject: MonitoredPeer | None
    """Whom it is about, where it ends with them."""
    table: bool
    """Whether the station is not synchronized before it is done."""
    slices: Iterator[bytes]


@final
class Station:
    """A station and its connection (`speaker.peer.engine_context.TimerOwner`)."""

    __slots__ = (
        "_context",
        "_exporter",
        "_failures",
        "_heard",
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

    def __init__(self, context: EngineContext, exporter: Exporter, config: BmpCollector) -> None:
        self._context = context
        self._exporter = exporter
        self.config = config
        self.connection: int | None = None
        self.streaming = False
        """Whether it is connected, and told everything that happens."""
        self.buffer: list[bytes] = []
        """What has to be sent when the input that is being handled has been."""
        self.jobs: deque[SlicedJob] = deque()
        self.queued = 0
        self.octets_sent = 0
        self.connections = 0
        self.since = context.now
        self.reason = "connecting"
        self._failures = 0
        self._heard = 0

    @property
    def where(self) -> tuple[str, str | None]:
        """Nobody's instance (`TimerOwner`)."""
        return ("", self.config.name)

    # ------------------------------------------------------------- connection

    def connect(self) -> None:
        """Begin an attempt."""
        config = self.config
        self.connection = self._context.new_connection()
        self._exporter.connections[self.connection] = self
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
        """Begin to tell; the exporter goes on with what there is."""
        self.streaming = True
        self._exporter.recount()
        self.since = self._context.now
        self.reason = ""
        self.connections += 1
        self.octets_sent = self.queued = self._heard = 0
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
        self._tell()

    def failed(self, reason: str) -> None:
        """Handle the end of the connection, or of an attempt, and try again after a pause."""
        was = self.streaming
        if was and self._context.now - self.since >= STEADY:
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
            self._tell()

    def drop(self, reason: str) -> None:
        """Disconnect a station without a word, and try again after a pause."""
        if self.connection is not None:
            self._context.out.append(Close(self.connection, abort=True))
        self.failed(reason)

    def close(self, why: TerminationReason) -> None:
        """End for good, with a Termination (RFC 7854 section 4.5)."""
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
            self._exporter.connections.pop(self.connection, None)
            self.connection = None
        self.streaming = False
        self._exporter.recount()
        self.buffer.clear()
        self.jobs.clear()
        self.queued = 0
        for timer in (Timer.STATISTICS, Timer.SEND_HOLD):
            self._context.timers.stop((self, timer))

    def _tell(self) -> None:
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
        """Send what has been put together."""
        if self.buffer and self.connection is not None:
            octets = b"".join(self.buffer)
            self.buffer.clear()
            if octets:
                self.octets_sent += len(octets)
                self._context.out.append(Write(self.connection, (octets,)))

    def heard(self, octets: int) -> None:
        """Count what the station says, which nobody reads."""
        self._heard += octets
        if self._heard > MAX_INPUT:
            self.drop("the station talks, which BMP has no use for")

    def queue_changed(self, octets: int) -> None:
        """Watch what the station does not take."""
        progress = octets < self.queued or not self.queued
        self.queued = octets
        if octets > self.config.queue_limit:
            self.drop(f"the station does not read: {octets} octets were waiting")
        elif not octets:
            self._context.timers.stop((self, Timer.SEND_HOLD))
        elif progress:
            self._context.timers.start((self, Timer.SEND_HOLD), self._context.now + STALLED)

    # -------------------------------------------------------------------- work

    @property
    def ready(self) -> bool:
        """Whether there is work, and room for what comes of it."""
        return bool(self.jobs) and self.queued < PATIENCE

    def work(self) -> None:
        """Do one slice."""
        octets = next(self.jobs[0].slices, None)
        if octets is None:
            self.jobs.popleft()
        elif octets:
            self.buffer.append(octets)

    def gone(self, subject: MonitoredPeer) -> None:
        """Leave the work that was about somebody who is no more."""
        if any(job.subject is subject for job in self.jobs):
            self.jobs = deque(job for job in self.jobs if job.subject is not subject)

    def expired(self, timer: Timer, due: float) -> None:
        """Handle a timer (`TimerOwner`)."""
        del due
        match timer:
            case Timer.COLLECTOR_RETRY:
                self.reason = "connecting"
                self.connect()
            case Timer.SEND_HOLD:
                self.drop(f"the station has read nothing for {STALLED:.0f}s")
            case _:
                self._exporter.report(self)
                self._start_statistics()

    def _start_statistics(self) -> None:
        if self.config.statistics_interval:
            self._context.timers.start(
                (self, Timer.STATISTICS), self._context.now + self.config.statistics_interval
            )

    # -------------------------------------------------------------------- view

    def status(self) -> CollectorStatus:
        """Return it for people; ``since`` is on the core's clock."""
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
