"""The pure core of the speaker: an input and the time in, actions out.

Touches no socket, no clock and no chance of its own, so that a run that was written down can be
played again. Single-threaded and never entered twice. An error of ours in handling an input is
reported and costs at most the session that it was for.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from typing import assert_never

from speaker.api import (
    CollectorStatus,
    Fault,
    InstanceConfig,
    InstanceStatus,
    PeerStatus,
    RouteView,
    UnknownName,
)
from speaker.engine import views
from speaker.engine.digest import digest
from speaker.engine.inputs import (
    BytesReceived,
    Command,
    EnablePeer,
    Input,
    NeighborFound,
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
from speaker.engine.instance import CONFIGURATION, DECONFIGURED, EstablishedPeer, Instance
from speaker.engine.monitoring import Exporter
from speaker.engine.observer import Observer
from speaker.iana import CeaseSubcode
from speaker.message import Notification
from speaker.nlri import Family
from speaker.peer.actions import Action, Close
from speaker.peer.engine_context import EngineContext

MAX_QUEUE = 64 * 1024 * 1024
"""Octets that may wait for one peer before its session is given up."""


class Engine:
    """All instances of one process.

    ``restarting`` says that a predecessor left sessions whose peers keep our routes (RFC 4724).
    """

    def __init__(
        self, rng: random.Random, *, max_queue: int = MAX_QUEUE, restarting: bool = False
    ) -> None:
        self._context = EngineContext(rng)
        self._instances: dict[str, Instance] = {}
        self._monitoring = Exporter(self._context, self._instances)
        self.max_queue = max_queue
        self.restarting = restarting
        self._neighbors: dict[str, str | None] = {}
        """Interface -> who is at its other end, as far as unnumbered peers asked for it."""

    def handle(self, item: Input, now: float) -> list[Action]:
        """Take one input at a time; what the shell has to do about it, in order.

        Raises `UnknownName` for a command that names what is not there, and
        `speaker.api.InvalidConfig`; nothing else, and nothing for what comes from a peer.
        """
        context = self._context
        context.now = now
        # What comes often is told by its class: a pattern takes an input apart, by name and piece by
        # piece, before it says yes.
        if isinstance(item, BytesReceived):
            session = context.connections.get(item.connection)
            if session is not None:
                # Each message has a fence of its own, which knows what to do with the session.
                session.received(item.data)
            else:
                self._monitoring.received(item.connection, len(item.data))
        elif isinstance(item, SendUpdates):
            for instance in self._instances.values():
                # A fence, too, without the cost of a context.
                try:
                    instance.outbound.flush()
                except Exception as error:  # noqa: BLE001  the documented fence
                    self._broken(error, "telling peers of changes", instance.name)
            if self._monitoring.streaming:
                self._monitoring.work()
        elif isinstance(item, UpdateRoutes):
            self.instance(item.instance).outbound.update_routes(item.route_set, item.changes)
        else:
            self._seldom(item, now)
        if self._monitoring.streaming:
            self._monitoring.emit()
        return context.take()

    def _seldom(self, item: Command | NeighborFound | TimersDue | Transport, now: float) -> None:
        match item:
            case TimersDue():
                self._timers(now)
            case NeighborFound(interface, address):
                self._neighbors[interface] = address
                for instance in self._instances.values():
                    with self._fence("a neighbour was found", instance.name):
                        instance.neighbor_found(interface, address)
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
                gone = self._instances.pop(name, None)
                if gone is not None:
                    gone.stop(DECONFIGURED)
                    self._monitoring.instance_down(gone)
            case (
                SetPeer()
                | RemovePeer()
                | ShutDownPeer()
                | EnablePeer()
                | ResetPeer()
                | RequestRefresh()
            ):
                self._peer_command(item)
            case RemoveRouteSet(name, route_set):
                known = self._instances.get(name)
                if known is not None:
                    known.outbound.remove_route_set(route_set)
            case Shutdown(communication):
                cease = Notification.cease(CeaseSubcode.ADMINISTRATIVE_SHUTDOWN, communication)
                for instance in self._instances.values():
                    instance.stop(cease, keep_routes=True)
                self._monitoring.stop()
            case SetCollectors(collectors):
                self._monitoring.configure(collectors)
                for instance in self._instances.values():
                    instance.observer = self._observer
            case WallClock(offset):
                self._monitoring.offset = offset
            case _:
                assert_never(item)

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
            case RequestRefresh(name, peer_name, families):
                self.instance(name).request_refresh(peer_name, families)
            case _:
                assert_never(item)

    def _transport(
        self,
        item: Transport,
    ) -> None:
        context = self._context
        if isinstance(item, TransportAccepted):
            instance = self._instances.get(item.instance)
            if instance is None or not instance.accept(item.connection, item.local, item.remote):
                context.out.append(Close(item.connection, abort=True))
            return
        session = context.connections.get(item.connection)
        if session is None:
            if self._monitoring.transport(item):
                return
            if isinstance(item, TransportConnected):
                context.out.append(Close(item.connection, abort=True))
            return
        connections = session.peer.connections
        match item:
            case TransportConnected(connection, local, remote):
                connections.connected(connection, local, remote)
            case TransportFailed(connection, reason):
                connections.failed(connection, reason)
            case TransportClosed(connection, reason):
                connections.closed(connection, reason)
            case QueueChanged(connection, octets):
                connections.queue_changed(connection, octets, self.max_queue)

    def _timers(self, now: float) -> None:
        for (owner, timer), due in self._context.timers.expire(now):
            with self._fence(f"timer {timer.name}", *owner.where):
                owner.expired(timer, due)

    @contextlib.contextmanager
    def _fence(self, where: str, instance: str = "", peer: str | None = None) -> Iterator[None]:
        # An error of ours for one peer or instance must not keep another from being served.
        try:
            yield
        except Exception as error:  # noqa: BLE001  the documented fence
            self._broken(error, where, instance, peer)

    def _broken(
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
        before = self._instances.get(config.name)
        if before is not None and before.same_router(config):
            before.config = config
            return
        after = self._instances[config.name] = Instance(
            self._context,
            config,
            neighbors=self._neighbors,
            restarting=self.restarting and before is None,
        )
        after.observer = self._observer
        if before is not None:
            # Another AS or identifier is another router; what it was told to do stays.
            before.stop(CONFIGURATION)
            self._monitoring.instance_down(before)
        self._monitoring.instance_up(after)
        if before is not None:
            after.inherit(before)

    @property
    def _observer(self) -> Observer | None:
        """Nobody, while there are no monitoring stations: then nothing is paid for them."""
        return self._monitoring if self._monitoring.stations else None

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
        """Whether the shell should give a `SendUpdates`, once it has given what else has come."""
        # Asked after each input: plain loops, here and below, cost a third of what `any` does.
        for instance in self._instances.values():
            if instance.outbound.updates_pending:
                return True
        return self._monitoring.needs_work

    def next_deadline(self) -> float | None:
        """Return when `TimersDue` should be given; None is never."""
        return self._context.timers.next_deadline()

    def describe_connection(self, connection: int) -> tuple[str, str] | None:
        """Return the instance and the peer of a connection."""
        session = self._context.connections.get(connection)
        return None if session is None else (session.peer.instance.name, session.peer.name)

    def digest(self, now: float) -> dict[str, str]:
        """Return checksums of the state at a time; see `speaker.engine.digest`."""
        self._context.now = now
        return digest(self._context, self._instances)

    def peers(self, now: float) -> Iterator[PeerStatus]:
        """Iterate over all sessions, by instance and name."""
        self._context.now = now
        for _, instance in sorted(self._instances.items()):
            for _, peer in sorted(instance.peers.items()):
                yield views.peer_status(instance, peer)

    def collectors(self, now: float) -> Iterator[CollectorStatus]:
        """Iterate over the monitoring stations, by name."""
        self._context.now = now
        yield from self._monitoring.statuses()

    def instances(self) -> Iterator[InstanceStatus]:
        """Iterate over all instances, by name."""
        for _, instance in sorted(self._instances.items()):
            yield views.instance_status(instance)

    def routes_available(self, instance: str, family: Family) -> Iterator[RouteView]:
        """See `speaker.api.SpeakerPort`."""
        return views.available(self.instance(instance), family)

    def _members(self, instance: str, peer: str | None) -> list[EstablishedPeer]:
        host = self.instance(instance)
        if peer is None:
            return [member for _, member in sorted(_by_name(host))]
        member = host.members.get(host.peer(peer))
        return [] if member is None else [member]

    def routes_advertised(
        self, instance: str, peer: str | None, family: Family
    ) -> Iterator[RouteView]:
        """See `speaker.api.SpeakerPort`."""
        for member in self._members(instance, peer):
            yield from views.advertised(member, family)

    def routes_received(
        self, instance: str, peer: str | None, family: Family
    ) -> Iterator[RouteView]:
        """See `speaker.api.SpeakerPort`."""
        for member in self._members(instance, peer):
            yield from views.received(self.instance(instance), member, family)


def _by_name(instance: Instance) -> Iterator[tuple[str, EstablishedPeer]]:
    return ((peer.name, member) for peer, member in instance.members.items())
