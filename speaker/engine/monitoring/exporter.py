"""The engine's observer: what happens becomes BMP (RFC 7854), once for all stations that want it.

An UPDATE is passed on with the octets in which it came wherever the Adj-RIB-In says the same as it;
where it does not (a malformed one, a family that is not spoken) the routes are said as they are held.
Every method that the engine calls has a fence: an error here ends connections to stations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar, cast, final

from speaker.api import BmpCollector, CollectorStatus, Fault, Monitor
from speaker.bmp import TerminationReason
from speaker.engine.inputs import (
    QueueChanged,
    Transport,
    TransportAccepted,
    TransportClosed,
    TransportConnected,
    TransportFailed,
)
from speaker.engine.instance import EstablishedPeer, Instance
from speaker.engine.monitoring import table_dump
from speaker.engine.monitoring.encode_routes import announced, cut, withdrawn
from speaker.engine.monitoring.monitored_peers import (
    MonitoredLocRib,
    MonitoredPeer,
    MonitoredSession,
    number_of,
    views_of,
)
from speaker.engine.monitoring.station import SlicedJob, Station
from speaker.iana import IPV4_UNICAST, Afi, MessageType
from speaker.message import Reach, Unreach, Update, frame_message
from speaker.nlri import Family, decode_prefixes
from speaker.peer.engine_context import EngineContext
from speaker.rib.loc_rib import Change
from speaker.rib.update_group import UpdateBatch

_ADJ_RIB_IN: Final[tuple[Monitor, ...]] = ("pre-policy", "post-policy")
Method = TypeVar("Method", bound=Callable[..., None])


def _fenced(method: Method) -> Method:
    """Report an error of ours, and begin again with all stations: the fence of this room."""

    @functools.wraps(method)
    def fenced(self: Exporter, *args: object, **options: object) -> None:
        try:
            method(self, *args, **options)
        except Exception as error:  # noqa: BLE001  the documented fence
            self.broken(method.__name__, error)

    return cast("Method", fenced)


@final
class Exporter:
    """All monitoring stations of an engine (`speaker.engine.observer.Observer`)."""

    def __init__(self, context: EngineContext, instances: Mapping[str, Instance]) -> None:
        """Begin without stations; ``instances`` are the engine's, and stay its own."""
        self._context = context
        self._instances = instances
        self.stations: dict[str, Station] = {}
        self.connections: dict[int, Station] = {}
        self.offset: float | None = None
        """Unix time less the core's time."""
        self.streaming: tuple[Station, ...] = ()
        """The stations that are connected."""
        self._wanting: dict[Monitor, tuple[Station, ...]] = {}
        self._sessions: dict[EstablishedPeer, MonitoredSession] = {}
        self._identities: set[tuple[int, bytes]] = set()
        """Of the sessions."""
        self._loc_ribs: dict[Instance, MonitoredLocRib] = {}
        self._numbers: dict[Instance, int] = {}

    # ---------------------------------------------------------------- stations

    def configure(self, collectors: Sequence[BmpCollector]) -> None:
        """Keep the stations that stay as they are, end the others, and begin with new ones."""
        wanted = {collector.name: collector for collector in collectors}
        for name, station in list(self.stations.items()):
            if wanted.get(name) != station.config:
                station.close(
                    TerminationReason.ADMINISTRATIVELY_CLOSED
                    if name in wanted
                    else TerminationReason.PERMANENTLY_CLOSED
                )
                del self.stations[name]
        for name, config in wanted.items():
            if name not in self.stations:
                station = self.stations[name] = Station(self._context, self, config)
                station.connect()

    def stop(self) -> None:
        """End all connections: the speaker is stopped."""
        for station in self.stations.values():
            station.close(TerminationReason.ADMINISTRATIVELY_CLOSED)
        self.stations.clear()

    def broken(self, where: str, error: Exception) -> None:
        """Report an error of ours; stations are told everything anew."""
        self._context.report(
            Fault(
                instance="",
                peer=None,
                where=f"telling monitoring stations ({where})",
                error=f"{type(error).__name__}: {error}",
            )
        )
        for station in self.streaming:
            station.drop("an internal error")

    def recount(self) -> None:
        """Look again at who is connected, and what they want."""
        self.streaming = tuple(s for s in self.stations.values() if s.streaming)
        wanting: dict[Monitor, list[Station]] = {}
        for station in self.streaming:
            for monitor in dict.fromkeys(station.config.monitor):
                wanting.setdefault(monitor, []).append(station)
        self._wanting = {monitor: tuple(stations) for monitor, stations in wanting.items()}

    def transport(self, item: Transport) -> bool:
        """Handle what happens to a station's connection; False when it is nobody's here."""
        if isinstance(item, TransportAccepted):
            return False
        station = self.connections.get(item.connection)
        if station is None:
            return False
        match item:
            case TransportConnected():
                station.connected()
                self._begin(station)
            case TransportFailed(reason=reason) | TransportClosed(reason=reason):
                station.failed(reason)
            case QueueChanged(octets=octets):
                station.queue_changed(octets)
        return True

    def received(self, connection: int, octets: int) -> None:
        """Throw away what a station says."""
        station = self.connections.get(connection)
        if station is not None:
            station.heard(octets)

    @_fenced
    def _begin(self, station: Station) -> None:
        """Tell a station what there is: who is up at once, the tables in slices."""
        time = self._now
        for instance in self._instances.values():
            if "loc-rib" in station.config.monitor:
                subject = self._loc_rib(instance)
                station.buffer.append(subject.up(time))
                station.jobs.append(
                    SlicedJob(subject, table=True, slices=table_dump.loc_rib(subject))
                )
            for member in instance.members.values():
                self._introduce(station, self._session(instance, member), time, end=True)

    def _introduce(
        self, station: Station, subject: MonitoredSession, time: int, *, end: bool
    ) -> None:
        views = views_of(subject, station.config.monitor)
        if not views:
            return
        station.buffer.append(subject.up(time))
        received = tuple(monitor for monitor in views if monitor in _ADJ_RIB_IN)
        if received and (
            end or any(map(subject.member.adj_in.received, subject.member.adj_in.families))
        ):
            slices = table_dump.adj_rib_in(subject, received, end=end)
            station.jobs.append(SlicedJob(subject, table=True, slices=slices))
        if end and "adj-rib-out" in views:
            station.jobs.append(
                SlicedJob(subject, table=True, slices=table_dump.adj_rib_out(subject))
            )

    # -------------------------------------------------------------------- time

    @property
    def _now(self) -> int:
        """Microseconds of Unix time, 0 while that is not known."""
        return 0 if self.offset is None else int((self._context.now + self.offset) * 1_000_000)

    @property
    def _stamp(self) -> bytes:
        seconds, microseconds = divmod(self._now, 1_000_000)
        return (seconds & 0xFFFFFFFF).to_bytes(4, "big") + microseconds.to_bytes(4, "big")

    # -------------------------------------------------------------------- work

    @property
    def needs_work(self) -> bool:
        """Whether there is a slice to be made."""
        return bool(self.streaming) and any(station.ready for station in self.streaming)

    @_fenced
    def work(self) -> None:
        """Make one slice for each station that has room for it."""
        for station in self.streaming:
            if station.ready:
                station.work()

    def emit(self) -> None:
        """Send what has been put together while one input was handled."""
        for station in self.streaming:
            station.emit()

    @_fenced
    def report(self, station: Station) -> None:
        """Begin to send Statistics Reports of everybody, unless the last ones are still waiting."""
        if any(job.subject is None for job in station.jobs):
            return
        subjects: list[MonitoredPeer] = []
        if "loc-rib" in station.config.monitor:
            subjects += self._loc_ribs.values()
        subjects += (s for s in self._sessions.values() if views_of(s, station.config.monitor))
        slices = table_dump.statistics(subjects, self._now)
        station.jobs.append(SlicedJob(None, table=False, slices=slices))

    # ---------------------------------------------------------------- subjects

    def _number(self, instance: Instance) -> int:
        """Return an instance's distinguisher: 0 for the default table, which one can be."""
        known = self._numbers.get(instance)
        if known is None:
            default = instance.vrf is None and 0 not in self._numbers.values()
            known = self._numbers[instance] = 0 if default else number_of(instance.name)
        return known

    def _loc_rib(self, instance: Instance) -> MonitoredLocRib:
        known = self._loc_ribs.get(instance)
        if known is None:
            known = self._loc_ribs[instance] = MonitoredLocRib(self._number(instance), instance)
        return known

    def _session(self, instance: Instance, member: EstablishedPeer) -> MonitoredSession:
        known = self._sessions.get(member)
        if known is None:
            number = self._number(instance)
            known = MonitoredSession(number, member, own_number=None)
            if known.identity in self._identities:
                # Peers may differ in their port or interface only, which BMP does not tell.
                name = member.peer.name
                known = MonitoredSession(number, member, own_number=number_of(instance.name, name))
            self._sessions[member] = known
            self._identities.add(known.identity)
        return known

    # ---------------------------------------------------------------- observer

    @_fenced
    def instance_up(self, instance: Instance) -> None:
        """An instance is there, and has no session yet."""
        stations = self._wanting.get("loc-rib", ())
        if stations:
            subject = self._loc_rib(instance)
            for station in stations:
                station.buffer.append(subject.up(self._now))
                station.jobs.append(
                    SlicedJob(subject, table=True, slices=table_dump.loc_rib(subject))
                )

    @_fenced
    def instance_down(self, instance: Instance) -> None:
        """An instance is gone, and its sessions before it."""
        subject = self._loc_ribs.pop(instance, None)
        if subject is not None:
            subject.present = False
            for station in self._wanting.get("loc-rib", ()):
                station.gone(subject)
                station.buffer.append(subject.down(self._now))
        self._numbers.pop(instance, None)

    @_fenced
    def peer_up(self, member: EstablishedPeer) -> None:
        """See `Observer`."""
        if self.streaming:
            instance = self._instances[member.peer.instance.name]
            subject = self._session(instance, member)
            for station in self.streaming:
                # The peer's own End-of-RIB comes after what it says.
                self._introduce(station, subject, self._now, end=False)

    @_fenced
    def peer_down(self, member: EstablishedPeer) -> None:
        """See `Observer`."""
        subject = self._sessions.pop(member, None)
        if subject is None:
            return
        subject.present = False
        self._identities.discard(subject.identity)
        for station in self.streaming:
            if views_of(subject, station.config.monitor):
                station.gone(subject)
                station.buffer.append(subject.down(self._now))

    @_fenced
    def update_received(self, member: EstablishedPeer, body: bytes, update: Update) -> None:
        """See `Observer`."""
        verbatim: list[bytes] = []
        for monitor in _ADJ_RIB_IN:
            stations = self._wanting.get(monitor)
            if not stations:
                continue
            subject = self._sessions[member]
            if not _as_it_came(member, update):
                updates = _as_held(subject, monitor, update)
            elif monitor == "pre-policy" or _passes(member, update):
                verbatim = verbatim or [frame_message(MessageType.UPDATE, body)]
                updates = verbatim
            else:
                updates = _as_held(subject, monitor, update)
            self._send(stations, subject, monitor, updates)

    @_fenced
    def plain_update_received(self, member: EstablishedPeer, body: bytes) -> None:
        """See `Observer`."""
        verbatim: list[bytes] = []
        for monitor in _ADJ_RIB_IN:
            stations = self._wanting.get(monitor)
            if not stations:
                continue
            subject = self._sessions[member]
            if monitor == "pre-policy" or member.adj_in.accepts_all:
                verbatim = verbatim or [frame_message(MessageType.UPDATE, body)]
                self._send(stations, subject, monitor, verbatim)
            else:
                withdrawn = int.from_bytes(body[:2], "big")
                at = 4 + int.from_bytes(body[2:4], "big")
                keys = decode_prefixes(body[2 : 2 + withdrawn] or body[at:], Afi.IPV4)
                updates = table_dump.held(subject, monitor, IPV4_UNICAST, keys)
                self._send(stations, subject, monitor, updates)

    def _send(
        self,
        stations: Sequence[Station],
        subject: MonitoredPeer,
        monitor: Monitor,
        updates: Sequence[bytes],
    ) -> None:
        octets = subject.monitored(monitor, updates, self._stamp)
        if octets:
            for station in stations:
                station.buffer.append(octets)

    @_fenced
    def routes_changed(
        self, member: EstablishedPeer, family: Family, keys: Sequence[bytes]
    ) -> None:
        """See `Observer`."""
        for monitor in _ADJ_RIB_IN:
            stations = self._wanting.get(monitor)
            if stations:
                subject = self._sessions[member]
                self._send(
                    stations, subject, monitor, table_dump.held(subject, monitor, family, keys)
                )

    @_fenced
    def policy_changed(self, member: EstablishedPeer) -> None:
        """See `Observer`."""
        for station in self._wanting.get("post-policy", ()):
            subject = self._sessions[member]
            slices = table_dump.adj_rib_in(subject, ("post-policy",), anew=True, end=False)
            station.jobs.append(SlicedJob(subject, table=True, slices=slices))

    @_fenced
    def updates_sent(self, member: EstablishedPeer, told: UpdateBatch) -> None:
        """See `Observer`."""
        stations = self._wanting.get("adj-rib-out")
        subject = self._sessions.get(member)
        if stations and subject is not None:
            self._send(stations, subject, "adj-rib-out", cut(told.octets))

    @_fenced
    def loc_rib_changed(
        self, instance: Instance, changes: Mapping[Family, Sequence[Change]]
    ) -> None:
        """See `Observer`."""
        stations = self._wanting.get("loc-rib")
        if not stations:
            return
        updates: list[bytes] = []
        for family, some in changes.items():
            for _, new, nlri in some:
                if new is None:
                    updates += withdrawn(family, nlri)
                else:
                    updates += announced(family, new, nlri, as4=True)
        self._send(stations, self._loc_rib(instance), "loc-rib", updates)

    # -------------------------------------------------------------------- view

    def statuses(self) -> Iterator[CollectorStatus]:
        """Iterate over the stations, by name."""
        for _, station in sorted(self.stations.items()):
            yield station.status()


def _as_it_came(member: EstablishedPeer, update: Update) -> bool:
    """Tell whether the Adj-RIB-In says what an UPDATE says."""
    if update.faults or update.ignored or member.inbound.path_limit_exceeded:
        return False
    # With a role, routes are held with an Only to Customer attribute (RFC 9234 section 5).
    return member.negotiated.local_role is None


def _passes(member: EstablishedPeer, update: Update) -> bool:
    """Tell whether all routes of an UPDATE are imported as they came."""
    adj_in = member.adj_in
    if not adj_in.accepts_all:
        return not update.announced
    return all(
        path.rejected is None
        for reach in update.announced
        for path in adj_in.by_path(reach.family, reach.wire()[:1])[0]
    )


def _as_held(subject: MonitoredSession, monitor: Monitor, update: Update) -> list[bytes]:
    """Return what is held now of the routes that an UPDATE names."""
    updates: list[bytes] = []
    parts: tuple[Reach | Unreach, ...] = (*update.withdrawn, *update.announced)
    for part in parts:
        updates += table_dump.held(subject, monitor, part.family, part.wire())
    return updates
