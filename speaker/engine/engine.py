"""The pure core of the speaker: an input and the time in, actions out.

Touches no socket, clock or source of chance of its own, so that a recorded run can be replayed.
Single-threaded and never entered twice. An internal error in handling an input is reported and ends
at most one session.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import assert_never

from speaker.api import CollectorStatus, Fault, InstanceConfig, PathDown, UnknownName
from speaker.engine.best_path_streams import BestPathStreams
from speaker.engine.digest import digest
from speaker.engine.effect_of_change import is_same_router
from speaker.engine.engine_views import EngineViews
from speaker.engine.inputs import (
    AdvertiseAgain,
    BytesReceived,
    Command,
    DeviceFound,
    Discovery,
    EnablePeer,
    Input,
    NeighborFound,
    PathsDown,
    PeerCommand,
    QueueChanged,
    RemoveInstance,
    RemovePeer,
    RemoveRouteSet,
    RequestRefresh,
    ResetPeer,
    SendUpdates,
    SetCollectors,
    SetInstance,
    SetNextHopMetrics,
    SetPeer,
    Shutdown,
    ShutDownPeer,
    TimersDue,
    Transport,
    TransportAccepted,
    TransportClosed,
    TransportConnected,
    TransportFailed,
    UpdateRoutes,
    WallClock,
)
from speaker.engine.instance import DECONFIGURED, Instance
from speaker.engine.instance_imports import InstanceImports
from speaker.engine.monitoring import Exporter
from speaker.engine.observer import ObserverSlot
from speaker.engine.sliced_work import SlicedWork
from speaker.iana import CeaseSubcode
from speaker.message import Notification
from speaker.peer.actions import Action, Close, Write
from speaker.peer.engine_context import EngineContext
from speaker.peer.peer import CONFIGURATION_CHANGE
from speaker.rib.next_hop_metrics import NextHopMetrics
from speaker.rib.policy import compile_import

MAX_QUEUED_OCTETS = 64 * 1024 * 1024
"""Octets that may wait for one peer before its session is ended."""


class Engine:
    """All instances of one process.

    ``rng`` is the source of jitter. ``max_queue`` is the number of octets that may wait for one
    peer. ``restarting``: a previous process left sessions whose peers keep its routes (RFC 4724).
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        max_queue: int = MAX_QUEUED_OCTETS,
        restarting: bool = False,
    ) -> None:
        self._context = EngineContext(rng)
        self._instances: dict[str, Instance] = {}
        self.views = EngineViews(self._context, self._instances, self.instance)
        self._monitoring = Exporter(self._context, self._instances)
        self._work = SlicedWork(partial(self._report_fault, where="changing routes in slices"))
        self._imports = InstanceImports(self._instances, self._work)
        self._slot = ObserverSlot()
        self._metrics = NextHopMetrics()
        self._streams = BestPathStreams(self._context, self._instances, self._report_fault)
        self.max_queue = max_queue
        self.restarting = restarting
        self._neighbors: dict[str, str | None] = {}
        """Interface -> the discovered neighbour's address, for unnumbered peers."""

    def handle(self, item: Input, now: float) -> list[Action]:
        """Process one input at a time (seconds) and return the actions for the shell, in order.

        Raises `UnknownName` for a command with an unknown instance or peer, and
        `speaker.api.InvalidConfig`; nothing else, whatever a peer sends.
        """
        context = self._context
        context.now = now
        # Frequent inputs are recognised by their class: a pattern would read the fields one by one
        # before it matches.
        if isinstance(item, BytesReceived):
            connection = context.connections.get(item.connection)
            if connection is not None:
                # Each message has a fence of its own, which ends the session.
                connection.received(item.data)
            else:
                self._monitoring.received(item.connection, len(item.data))
        elif isinstance(item, SendUpdates):
            self._work.renew()
            self._import_routes()
            for instance in self._instances.values():
                # A fence, too, without the cost of a context manager.
                try:
                    instance.outbound.send_pending()
                except Exception as error:  # noqa: BLE001  the documented fence
                    self._report_fault(error, "sending updates", instance.name)
            if self._streams.streams:
                self._streams.work()
            if self._monitoring.streaming:
                self._monitoring.work()
        elif isinstance(item, UpdateRoutes):
            self.instance(item.instance).outbound.update_routes(item.route_set, item.changes)
        else:
            self._handle_rare(item, now)
        if self._monitoring.streaming:
            self._monitoring.emit()
        return context.take()

    def _import_routes(self) -> None:
        """Bring all Loc-RIBs to the state that the UPDATEs of this turn are to describe."""
        for instance in self._instances.values():
            if instance.outbound.applies_policies:
                with self._fence("applying an import policy", instance.name):
                    instance.outbound.apply_policies()
        for instance in self._imports.imported:
            with self._fence("importing routes", instance.name):
                instance.outbound.send_table_changes()

    def _handle_rare(self, item: Command | Discovery | TimersDue | Transport, now: float) -> None:
        match item:
            case TimersDue():
                self._timers(now)
            case NeighborFound(interface, address):
                self._neighbors[interface] = address
                for instance in self._instances.values():
                    with self._fence("neighbour discovery", instance.name):
                        instance.neighbor_found(interface, address)
            case DeviceFound(device):
                for instance in self._instances.values():
                    with self._fence("retrying connections", instance.name):
                        instance.device_found(device)
            case (
                TransportConnected()
                | TransportFailed()
                | TransportAccepted()
                | TransportClosed()
                | QueueChanged()
            ):
                with self._fence(f"handling {type(item).__name__}"):
                    self._transport(item)
            case _:
                self._command(item)

    def _command(self, item: Command) -> None:
        match item:
            case SetInstance(config):
                self._set_instance(config)
            case RemoveInstance(name):
                removed = self._instances.pop(name, None)
                if removed is not None:
                    removed.stop(DECONFIGURED)
                    self._imports.follow_configuration()
                    self._monitoring.instance_down(name)
                    self._streams.instance_down(name)
                    self._set_metrics(name, {})
            case (
                SetPeer()
                | RemovePeer()
                | ShutDownPeer()
                | EnablePeer()
                | ResetPeer()
                | PathsDown()
                | RequestRefresh()
                | AdvertiseAgain()
            ):
                self._peer_command(item)
            case RemoveRouteSet(name, route_set):
                instance = self._instances.get(name)
                if instance is not None:
                    instance.outbound.route_sets.remove(route_set)
            case Shutdown(communication):
                self._shut_down(communication)
            case SetCollectors() | WallClock():
                self._monitoring_command(item)
            case SetNextHopMetrics(name, metrics):
                self.instance(name)
                self._set_metrics(name, metrics)
            case _:
                with self._fence("following best paths"):
                    self._streams.command(item)

    def _monitoring_command(self, item: SetCollectors | WallClock) -> None:
        match item:
            case SetCollectors(collectors):
                self._monitoring.configure(collectors)
                # Without stations there is no observer, and no cost.
                self._slot.observer = self._monitoring if self._monitoring.stations else None
            case WallClock(offset):
                self._monitoring.offset = offset
            case _:
                assert_never(item)

    def _set_metrics(self, name: str, metrics: Mapping[str, int]) -> None:
        """Set the metrics of an instance's next hops, for its paths wherever they are imported."""
        if self._metrics.set(name, metrics):
            for instance in self._instances.values():
                steps = instance.outbound.reselect(self._metrics.of(instance.name))
                imported = any(imported.instance == name for imported in instance.config.imports)
                if instance.name == name or imported:
                    self._work.add(steps)

    def _shut_down(self, communication: str) -> None:
        cease = Notification.cease(CeaseSubcode.ADMINISTRATIVE_SHUTDOWN, communication)
        self._work.stop()
        # What forwards goes on with the routes that it has.
        self._streams.stop()
        for instance in self._instances.values():
            instance.stop(cease, keep_routes=True)
        self._monitoring.stop()

    def _peer_command(self, item: PeerCommand) -> None:
        match item:
            case SetPeer(name, peer):
                self.instance(name).set_peer(peer)
            case RemovePeer(name, peer_name):
                known = self._instances.get(name)
                if known is not None:
                    known.remove_peer(peer_name)
            case ShutDownPeer(name, peer_name, communication):
                self.instance(name).shut_down_peer(peer_name, communication)
            case EnablePeer(name, peer_name):
                self.instance(name).peer(peer_name).enable()
            case ResetPeer(name, peer_name, communication):
                cease = Notification.cease(CeaseSubcode.ADMINISTRATIVE_RESET, communication)
                self.instance(name).peer(peer_name).reset(cease, "reset by hand")
            case PathsDown(paths):
                self._paths_down(paths)
            case RequestRefresh(name, peer_name, families):
                self.instance(name).request_refresh(peer_name, families)
            case AdvertiseAgain(name, peer_name):
                self.instance(name).advertise_again(peer_name)
            case _:
                assert_never(item)

    def _paths_down(self, paths: Iterable[PathDown]) -> None:
        for path in paths:
            instance = self._instances.get(path.instance)
            if instance is not None and path.peer in instance.peers:
                with self._fence("ending a session", path.instance, path.peer):
                    instance.path_down(path.peer, path.reason, independent=path.independent)
        # Each NOTIFICATION before the first report: what peers send over these paths is lost.
        self._context.out.sort(key=lambda action: type(action) is not Write)

    def _transport(self, item: Transport) -> None:
        context = self._context
        if isinstance(item, TransportAccepted):
            instance = self._instances.get(item.instance)
            if instance is None or not instance.accept(
                item.connection, item.local, item.remote, item.interface_address
            ):
                context.out.append(Close(item.connection, abort=True))
            return
        connection = context.connections.get(item.connection)
        if connection is None:
            if not self._monitoring.transport(item) and isinstance(item, TransportConnected):
                context.out.append(Close(item.connection, abort=True))
            return
        match item:
            case TransportConnected(_, local, remote, interface_address):
                connection.connected(local, remote, interface_address)
            case TransportFailed(_, reason):
                connection.connect_failed(reason)
            case TransportClosed(_, reason):
                connection.closed(reason)
            case QueueChanged(_, octets):
                connection.queue_changed(octets, self.max_queue)

    def _timers(self, now: float) -> None:
        for (owner, timer), due in self._context.timers.expire(now):
            with self._fence(f"timer {timer.name}", *owner.where):
                owner.expired(timer, due)

    @contextlib.contextmanager
    def _fence(self, where: str, instance: str = "", peer: str | None = None) -> Iterator[None]:
        # An internal error in one peer or instance must not affect another.
        try:
            yield
        except Exception as error:  # noqa: BLE001  the documented fence
            self._report_fault(error, where, instance, peer)

    def _report_fault(
        self, error: Exception, where: str, instance: str = "", peer: str | None = None
    ) -> None:
        self._context.report(
            Fault(
                instance=instance,
                peer=peer,
                where=where,
                error=f"{type(error).__name__}: {error}",
            )
        )

    def _set_instance(self, config: InstanceConfig) -> None:
        for imported in config.imports:
            compile_import(f"{config.name} imports {imported.instance}", imported.import_)
        before = self._instances.get(config.name)
        if before is not None and is_same_router(before.config, config):
            before.reconfigure(config)
            self._imports.follow_configuration()
            return
        after = self._instances[config.name] = Instance(
            self._context,
            config,
            self._slot,
            self._work,
            neighbors=self._neighbors,
            restarting=self.restarting and before is None,
        )
        if before is not None:
            # Another AS or identifier makes another router; its peers and routes stay configured.
            before.stop(CONFIGURATION_CHANGE)
            self._monitoring.instance_down(config.name)
        self._monitoring.instance_up(config.name)
        if before is None:
            after.originate((), config.originate)
        else:
            after.inherit(before)
        after.outbound.loc.set_metric(self._metrics.of(config.name))
        self._imports.follow_configuration()
        with self._fence("following best paths", config.name):
            self._streams.instance_up(after)

    # ------------------------------------------------------------------ reading

    def find(self, name: str) -> Instance | None:
        """Return an instance, or None."""
        return self._instances.get(name)

    def names(self) -> Sequence[str]:
        """Return the names of the instances."""
        return list(self._instances)

    def instance(self, name: str) -> Instance:
        """Return an instance. Raises `UnknownName`."""
        try:
            return self._instances[name]
        except KeyError:
            raise UnknownName("instance", name) from None

    @property
    def updates_pending(self) -> bool:
        """Whether a `SendUpdates` is due, after the inputs that are already there."""
        # Read after each input: attributes in place of calls, and plain loops, here and below, which
        # cost a third of what `any` does.
        if self._work.pending:
            return True
        for instance in self._instances.values():
            if instance.outbound.pending:
                return True
        if self._streams.streams and self._streams.needs_work:
            return True
        return bool(self._monitoring.streaming) and self._monitoring.needs_work

    def next_deadline(self) -> float | None:
        """Return the time at which `TimersDue` is due (seconds); None is never."""
        return self._context.timers.next_deadline()

    def describe_connection(self, connection: int) -> tuple[str, str] | None:
        """Return the names of the instance and the peer of a connection."""
        known = self._context.connections.get(connection)
        if known is None:
            return None
        instance, peer = known.where
        return (instance, peer or "")

    def digest(self, now: float) -> dict[str, str]:
        """Return checksums of the state at a time (seconds); see `speaker.engine.digest`."""
        self._context.now = now
        return digest(self._context, self._instances, self._streams.describe())

    def collectors(self, now: float) -> Iterator[CollectorStatus]:
        """Iterate over the monitoring stations, by name."""
        self._context.now = now
        yield from self._monitoring.statuses()
