"""The engine's observer, and a follower of its Loc-RIBs: events become BMP messages (RFC 7854).

Each is encoded once for all stations. An UPDATE is forwarded with the octets in which it was received
wherever the Adj-RIB-In holds exactly its routes; elsewhere (a malformed UPDATE, a family that was not
negotiated) the routes are encoded as they are held. Every method that the engine calls has a fence: an
error here ends connections to stations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar, cast, final

from speaker.api import BmpCollector, CollectorStatus, Fault, Monitor
from speaker.bmp import TerminationReason
from speaker.engine.established_peer import EstablishedPeer
from speaker.engine.inputs import (
    QueueChanged,
    Transport,
    TransportAccepted,
    TransportClosed,
    TransportConnected,
    TransportFailed,
)
from speaker.engine.instance import Instance
from speaker.engine.monitoring import table_dump
from speaker.engine.monitoring.monitored_peers import MonitoredPeer, MonitoredSession, views_of
from speaker.engine.monitoring.peer_registry import PeerRegistry
from speaker.engine.monitoring.routes_as_updates import announced, cut, withdrawn
from speaker.engine.monitoring.station import SlicedJob, Station
from speaker.iana import IPV4_UNICAST, Afi, MessageType
from speaker.message import Reach, Unreach, Update, frame_message
from speaker.nlri import Family, decode_prefixes
from speaker.peer.engine_context import EngineContext
from speaker.rib.loc_rib import TableChanges
from speaker.rib.update_group import UpdateBatch

_ADJ_RIB_IN: Final[tuple[Monitor, ...]] = ("pre-policy", "post-policy")
Method = TypeVar("Method", bound=Callable[..., None])


def _fenced(method: Method) -> Method:
    """Report an internal error and reconnect all stations: the fence of this package."""

    @functools.wraps(method)
    def fenced(self: Exporter, *args: object, **options: object) -> None:
        try:
            method(self, *args, **options)
        except Exception as error:  # noqa: BLE001  the documented fence
            self.report_fault(method.__name__, error)

    return cast("Method", fenced)


@final
class _LocRibExport:
    """Follows the Loc-RIB of an instance (`speaker.engine.instance.outbound_updates`)."""

    __slots__ = ("_exporter", "_instance", "outbound")

    def __init__(self, exporter: Exporter, instance: Instance) -> None:
        self._exporter = exporter
        self._instance = instance.name
        self.outbound = instance.outbound
        self.outbound.followers[self] = None

    def end(self) -> None:
        """Follow no longer."""
        self.outbound.followers.pop(self, None)

    def changed(self, changes: Mapping[Family, TableChanges]) -> None:
        """Export changes of best paths (`LocRibFollower`)."""
        self._exporter.loc_rib_changed(self._instance, changes)


@final
class Exporter:
    """All monitoring stations of an engine (`speaker.engine.observer.Observer`)."""

    def __init__(self, context: EngineContext, instances: Mapping[str, Instance]) -> None:
        """Start without stations; ``instances`` are the engine's, by name, and are read only."""
        self._context = context
        self._instances = instances
        self.stations: dict[str, Station] = {}
        self.connections: dict[int, Station] = {}
        self.offset: float | None = None
        """Unix time minus the core's time, in seconds."""
        self.streaming: tuple[Station, ...] = ()
        """The stations that are connected."""
        self._by_monitor: dict[Monitor, tuple[Station, ...]] = {}
        """The connected stations that want a kind of routes."""
        self._registry = PeerRegistry(instances)
        self._loc_ribs: dict[str, _LocRibExport] = {}
        """By instance; none while no connected station wants the Loc-RIB."""

    # ---------------------------------------------------------------- stations

    def configure(self, collectors: Sequence[BmpCollector]) -> None:
        """Keep the unchanged stations, close the others, and connect to new ones."""
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
        """Close all connections: the speaker stops."""
        for station in self.stations.values():
            station.close(TerminationReason.ADMINISTRATIVELY_CLOSED)
        self.stations.clear()

    def report_fault(self, where: str, error: Exception) -> None:
        """Report an internal error; every station is disconnected and gets all tables again."""
        self._context.report(
            Fault(
                instance="",
                peer=None,
                where=f"exporting to monitoring stations ({where})",
                error=f"{type(error).__name__}: {error}",
            )
        )
        for station in self.streaming:
            station.drop("an internal error")

    def stations_changed(self) -> None:
        """Update the connected stations, by the routes that they want (`StationOwner`)."""
        self.streaming = tuple(s for s in self.stations.values() if s.streaming)
        wanted: dict[Monitor, list[Station]] = {}
        for station in self.streaming:
            for monitor in dict.fromkeys(station.config.monitor):
                wanted.setdefault(monitor, []).append(station)
        self._by_monitor = {monitor: tuple(stations) for monitor, stations in wanted.items()}
        self._follow_loc_ribs()

    def _follow_loc_ribs(self) -> None:
        """Follow the Loc-RIBs of the present instances, or none of them."""
        instances = self._instances if "loc-rib" in self._by_monitor else {}
        for name, export in list(self._loc_ribs.items()):
            if name not in instances or instances[name].outbound is not export.outbound:
                del self._loc_ribs[name]
                export.end()
        for name, instance in instances.items():
            if name not in self._loc_ribs:
                self._loc_ribs[name] = _LocRibExport(self, instance)

    def transport(self, item: Transport) -> bool:
        """Handle a transport event; False where the connection is not a station's."""
        if isinstance(item, TransportAccepted):
            return False
        station = self.connections.get(item.connection)
        if station is None:
            return False
        match item:
            case TransportConnected():
                station.connected()
                self._send_present(station)
            case TransportFailed(reason=reason) | TransportClosed(reason=reason):
                station.failed(reason)
            case QueueChanged(octets=octets):
                station.queue_changed(octets)
        return True

    def received(self, connection: int, octets: int) -> None:
        """Discard octets from a station."""
        station = self.connections.get(connection)
        if station is not None:
            station.received(octets)

    @_fenced
    def _send_present(self, station: Station) -> None:
        """Send a new station Peer Up for all peers, and queue their tables."""
        time = self._now
        for name, instance in self._instances.items():
            if "loc-rib" in station.config.monitor:
                self._send_loc_rib(station, name)
            for established in instance.established.values():
                self._send_session(station, self._registry.session(established), time, end=True)

    def _send_loc_rib(self, station: Station, instance: str) -> None:
        peer = self._registry.loc_rib(instance)
        station.buffer.append(peer.up(self._now))
        station.jobs.append(SlicedJob(peer, table=True, slices=table_dump.loc_rib(peer)))

    def _send_session(
        self, station: Station, peer: MonitoredSession, time: int, *, end: bool
    ) -> None:
        """Send Peer Up and queue the tables; ``end``: with End-of-RIB, for an older session."""
        views = views_of(peer, station.config.monitor)
        if not views:
            return
        station.buffer.append(peer.up(time))
        received = tuple(monitor for monitor in views if monitor in _ADJ_RIB_IN)
        adj_in = peer.established.adj_in
        if received and (end or any(map(adj_in.received, adj_in.families))):
            slices = table_dump.adj_rib_in(peer, received, end=end)
            station.jobs.append(SlicedJob(peer, table=True, slices=slices))
        if end and "adj-rib-out" in views:
            station.jobs.append(SlicedJob(peer, table=True, slices=table_dump.adj_rib_out(peer)))

    # -------------------------------------------------------------------- time

    @property
    def _now(self) -> int:
        """Microseconds of Unix time, 0 while that is unknown."""
        return 0 if self.offset is None else int((self._context.now + self.offset) * 1_000_000)

    @property
    def _stamp(self) -> bytes:
        seconds, microseconds = divmod(self._now, 1_000_000)
        return (seconds & 0xFFFFFFFF).to_bytes(4, "big") + microseconds.to_bytes(4, "big")

    # -------------------------------------------------------------------- work

    @property
    def needs_work(self) -> bool:
        """Whether a slice is due."""
        return any(station.ready for station in self.streaming)

    @_fenced
    def work(self) -> None:
        """Encode one slice for each station with room in its queue."""
        for station in self.streaming:
            if station.ready:
                station.work()

    def emit(self) -> None:
        """Send the messages that were collected while one input was processed."""
        for station in self.streaming:
            station.emit()

    @_fenced
    def report_statistics(self, station: Station) -> None:
        """Queue Statistics Reports of all peers, unless the last ones still wait (`StationOwner`)."""
        if any(job.peer is None for job in station.jobs):
            return
        peers: list[MonitoredPeer] = []
        if "loc-rib" in station.config.monitor:
            peers += self._registry.loc_ribs()
        peers += (s for s in self._registry.sessions() if views_of(s, station.config.monitor))
        slices = table_dump.statistics(peers, self._now)
        station.jobs.append(SlicedJob(None, table=False, slices=slices))

    # ---------------------------------------------------------------- instances

    @_fenced
    def instance_up(self, instance: str) -> None:
        """Handle a new instance, which has no session yet."""
        self._follow_loc_ribs()
        for station in self._by_monitor.get("loc-rib", ()):
            self._send_loc_rib(station, instance)

    @_fenced
    def instance_down(self, instance: str) -> None:
        """Handle the removal of an instance, after that of its sessions."""
        self._follow_loc_ribs()
        peer = self._registry.remove_instance(instance)
        if peer is not None:
            for station in self._by_monitor.get("loc-rib", ()):
                station.cancel_jobs(peer)
                station.buffer.append(peer.down(self._now))

    # ---------------------------------------------------------------- observer

    @_fenced
    def peer_up(self, established: EstablishedPeer) -> None:
        """See `Observer`."""
        if self.streaming:
            peer = self._registry.session(established)
            for station in self.streaming:
                # The peer's own End-of-RIB follows its routes.
                self._send_session(station, peer, self._now, end=False)

    @_fenced
    def peer_down(self, established: EstablishedPeer) -> None:
        """See `Observer`."""
        peer = self._registry.remove_session(established)
        if peer is None:
            return
        for station in self.streaming:
            if views_of(peer, station.config.monitor):
                station.cancel_jobs(peer)
                station.buffer.append(peer.down(self._now))

    @_fenced
    def update_received(self, established: EstablishedPeer, body: bytes, update: Update) -> None:
        """See `Observer`."""
        verbatim: list[bytes] = []
        for monitor in _ADJ_RIB_IN:
            stations = self._by_monitor.get(monitor)
            if not stations:
                continue
            peer = self._registry.session(established)
            if _held_as_received(established, update) and (
                monitor == "pre-policy" or _imported_as_received(established, update)
            ):
                verbatim = verbatim or [frame_message(MessageType.UPDATE, body)]
                updates = verbatim
            else:
                updates = _as_held(peer, monitor, update)
            self._send(stations, peer, monitor, updates)

    @_fenced
    def plain_update_received(self, established: EstablishedPeer, body: bytes) -> None:
        """See `Observer`."""
        verbatim: list[bytes] = []
        for monitor in _ADJ_RIB_IN:
            stations = self._by_monitor.get(monitor)
            if not stations:
                continue
            peer = self._registry.session(established)
            if monitor == "pre-policy" or established.adj_in.accepts_all:
                verbatim = verbatim or [frame_message(MessageType.UPDATE, body)]
                self._send(stations, peer, monitor, verbatim)
            else:
                withdrawn = int.from_bytes(body[:2], "big")
                at = 4 + int.from_bytes(body[2:4], "big")
                keys = decode_prefixes(body[2 : 2 + withdrawn] or body[at:], Afi.IPV4)
                updates = table_dump.held(peer, monitor, IPV4_UNICAST, keys)
                self._send(stations, peer, monitor, updates)

    def _send(
        self,
        stations: Sequence[Station],
        peer: MonitoredPeer,
        monitor: Monitor,
        updates: Sequence[bytes],
    ) -> None:
        octets = peer.monitored(monitor, updates, self._stamp)
        if octets:
            for station in stations:
                station.buffer.append(octets)

    @_fenced
    def routes_changed(
        self, established: EstablishedPeer, family: Family, keys: Sequence[bytes]
    ) -> None:
        """See `Observer`."""
        for monitor in _ADJ_RIB_IN:
            stations = self._by_monitor.get(monitor)
            if stations:
                peer = self._registry.session(established)
                self._send(stations, peer, monitor, table_dump.held(peer, monitor, family, keys))

    @_fenced
    def policy_changed(self, established: EstablishedPeer) -> None:
        """See `Observer`."""
        for station in self._by_monitor.get("post-policy", ()):
            peer = self._registry.session(established)
            slices = table_dump.adj_rib_in(peer, ("post-policy",), resend=True, end=False)
            station.jobs.append(SlicedJob(peer, table=True, slices=slices))

    @_fenced
    def updates_sent(self, established: EstablishedPeer, batch: UpdateBatch) -> None:
        """See `Observer`."""
        stations = self._by_monitor.get("adj-rib-out")
        peer = self._registry.find_session(established)
        if stations and peer is not None:
            self._send(stations, peer, "adj-rib-out", cut(batch.octets))

    @_fenced
    def loc_rib_changed(self, instance: str, changes: Mapping[Family, TableChanges]) -> None:
        """Export changes of best paths."""
        stations = self._by_monitor.get("loc-rib")
        if not stations:
            return
        updates: list[bytes] = []
        for family, changed in changes.items():
            for _, new, nlri in changed.best:
                if new is None:
                    updates += withdrawn(family, nlri)
                else:
                    updates += announced(family, new, nlri, as4=True)
        self._send(stations, self._registry.loc_rib(instance), "loc-rib", updates)

    # ------------------------------------------------------------------ status

    def statuses(self) -> Iterator[CollectorStatus]:
        """Iterate over the stations, by name."""
        for _, station in sorted(self.stations.items()):
            yield station.status()


def _held_as_received(established: EstablishedPeer, update: Update) -> bool:
    """Return whether the Adj-RIB-In holds exactly the routes of an UPDATE."""
    if update.faults or update.ignored or established.inbound.path_limit_exceeded:
        return False
    # With a role, routes are held with an Only to Customer attribute (RFC 9234 section 5).
    return established.negotiated.local_role is None


def _imported_as_received(established: EstablishedPeer, update: Update) -> bool:
    """Return whether all routes of an UPDATE are imported without a change."""
    adj_in = established.adj_in
    if not adj_in.accepts_all:
        return not update.announced
    return all(
        path.rejected is None
        for reach in update.announced
        for path in adj_in.by_path(reach.family, reach.wire()[:1])[0]
    )


def _as_held(peer: MonitoredSession, monitor: Monitor, update: Update) -> list[bytes]:
    """Return UPDATEs for what is held now of the prefixes of an UPDATE."""
    updates: list[bytes] = []
    parts: tuple[Reach | Unreach, ...] = (*update.withdrawn, *update.announced)
    for part in parts:
        updates += table_dump.held(peer, monitor, part.family, part.wire())
    return updates
