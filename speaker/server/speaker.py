"""The speaker on asyncio: one `Engine` with its sockets and its clock.

The methods of `speaker.api.SpeakerPort` become inputs of the core, or read its state. Belongs to the
event loop's thread. Decides nothing about BGP.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

import msgspec

from speaker.api import (
    ONE_PATH,
    BestPathReader,
    BmpCollector,
    CollectorStatus,
    DynamicPeerConfig,
    Event,
    InstanceConfig,
    InstanceStatus,
    Multipath,
    PathDown,
    PeerConfig,
    PeerCounts,
    PeerStatus,
    RouteChanges,
    Routes,
)
from speaker.engine import Engine
from speaker.engine.configuration import ConfigurationReads
from speaker.engine.inputs import (
    AdvertiseAgain,
    BestPathsTaken,
    EnablePeer,
    FollowBestPaths,
    PathsDown,
    RemoveInstance,
    RemovePeer,
    RemoveRouteSet,
    RequestRefresh,
    ResetPeer,
    SetCollectors,
    SetInstance,
    SetNextHopMetrics,
    SetPeer,
    Shutdown,
    ShutDownPeer,
    UnfollowBestPaths,
    UpdateRoutes,
)
from speaker.nlri import Family
from speaker.recording import DEFAULT_LIMIT, Recorder
from speaker.server.best_path_queue import BestPathQueue
from speaker.server.input_loop import InputLoop
from speaker.server.recording_file import RecordingFile, Reservation

STOP_TIMEOUT_SECONDS: Final = 2.0
PEERS_PER_SLICE: Final = 25
"""The status of a peer takes 25 to 60 microseconds."""
_MIN_CLOSE_SECONDS: Final = 0.1


def _ignore(_: Event) -> None:
    """Do nothing with an event."""


class Speaker(ConfigurationReads):
    """BGP on this host; see `speaker.api.SpeakerPort` for the methods that drivers use.

    ``clock`` is a monotonic clock in seconds (the loop's by default), ``wall_clock`` Unix time for
    status and BMP, ``rng`` the source of jitter. ``on_event`` is called from the loop, must be quick
    and must not raise. ``restarting``: the previous process ended without a Cease, so that peers keep
    its routes (RFC 4724). ``record`` is a file in which every input of the core is recorded, up to
    ``record_limit`` octets (`speaker.recording`). The sessions of an instance wait until its
    listening addresses are no longer another process's. Before `start`, commands are queued.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] | None = None,
        wall_clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        on_event: Callable[[Event], None] | None = None,
        restarting: bool = False,
        record: Path | None = None,
        record_limit: int = DEFAULT_LIMIT,
    ) -> None:
        self._wall_clock = wall_clock
        self._rng = rng or random.Random()  # noqa: S311  jitter, no secret
        self._engine = Engine(self._rng, restarting=restarting)
        super().__init__(self._engine)
        self._inputs = InputLoop(
            self._engine,
            clock=clock,
            wall_clock=wall_clock,
            on_event=on_event or _ignore,
        )
        self._record = record
        self._reservation: Reservation | None = None
        self._record_limit = record_limit
        self._recorder: Recorder | None = None
        self._readers = itertools.count(1)
        self._file: RecordingFile | None = None

    # ------------------------------------------------------------ start, stop

    def reserve(self) -> None:
        """Take the file of a recording for this process; `start` does so if it is not done.

        Raises OSError where the file cannot be created, or another process records to it. An existing
        file is not changed before `start`.
        """
        if self._record is not None and self._reservation is None:
            self._reservation = Reservation(self._record)

    async def start(self, *, trace_received: float = 0.0) -> None:
        """Open the listening sockets and start the sessions of all queued commands.

        ``trace_received``: the part of the reads with UPDATEs that have a span. Raises OSError as
        `reserve`.
        """
        self.reserve()
        if self._record is not None and self._reservation is not None:
            self._file = RecordingFile(self._record, self._reservation.create())
        self._inputs.start(asyncio.get_running_loop())
        if self._file is not None:
            self._recorder = Recorder(
                self._engine,
                self._file,
                rng=self._rng,
                now=self._inputs.now(),
                started=self._wall_clock(),
                limit=self._record_limit,
            )
            self._inputs.handle = self._recorder.handle
        if trace_received:
            self._inputs.trace_received(trace_received)
        self._inputs.feed_wall_clock()
        self._inputs.resume()

    async def stop(self, timeout: float = STOP_TIMEOUT_SECONDS) -> None:  # noqa: ASYNC109  a limit
        """End all sessions within ``timeout`` seconds.

        Peers get a Cease (administrative shutdown); with graceful restart the connection ends without
        a NOTIFICATION, so that they keep the routes (RFC 4724 section 4).
        """
        loop = self._inputs.loop
        if loop is None:
            if self._reservation is not None:
                self._reservation.release()
            return
        deadline = loop.time() + timeout
        self._inputs.feed(Shutdown())
        await self._inputs.listeners.close()
        await self._inputs.transports.drain(deadline)
        now = self._inputs.now()
        self._inputs.stop()
        if self._recorder is not None and self._file is not None:
            self._recorder.finish(now)
            left = max(_MIN_CLOSE_SECONDS, deadline - loop.time())
            await loop.run_in_executor(None, self._file.close, left)

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        await self.stop()

    def _require(self, instance: str) -> None:
        """Raise `UnknownName` where an instance does not exist; before `start` it may be queued."""
        if self._inputs.loop is not None:
            self._engine.instance(instance)

    # -------------------------------------------------------------- commands

    def set_instance(self, config: InstanceConfig) -> None:
        """See `speaker.api.SpeakerPort`."""
        self._inputs.trace_links.note()
        self._inputs.feed(SetInstance(config))

    def remove_instance(self, name: str) -> None:
        """See `speaker.api.SpeakerPort`."""
        self._inputs.trace_links.note()
        self._inputs.feed(RemoveInstance(name))

    def set_peer(self, instance: str, config: PeerConfig | DynamicPeerConfig) -> None:
        """See `speaker.api.SpeakerPort`."""
        self._require(instance)
        self._inputs.trace_links.note()
        self._inputs.feed(SetPeer(instance, config))

    def remove_peer(self, instance: str, name: str) -> None:
        """See `speaker.api.SpeakerPort`."""
        self._inputs.trace_links.note()
        self._inputs.feed(RemovePeer(instance, name))

    def shut_down_peer(self, instance: str, peer: str, communication: str = "") -> None:
        """Administratively shut a peer down, with a shutdown communication (RFC 9003).

        A dynamic peer may connect again. Raises `UnknownName`.
        """
        self._require(instance)
        self._inputs.feed(ShutDownPeer(instance, peer, communication))

    def enable_peer(self, instance: str, peer: str) -> None:
        """Start again after `shut_down_peer`. Raises `UnknownName`."""
        self._require(instance)
        self._inputs.feed(EnablePeer(instance, peer))

    def reset_peer(self, instance: str, peer: str, communication: str = "") -> None:
        """End a session and start again at once (RFC 9003). Raises `UnknownName`.

        Also ends the pause of a peer beyond its prefix limit.
        """
        self._require(instance)
        self._inputs.feed(ResetPeer(instance, peer, communication))

    def paths_down(self, paths: Sequence[PathDown]) -> None:
        """See `speaker.api.SpeakerPort`."""
        self._inputs.trace_links.note()
        self._inputs.feed(PathsDown(tuple(paths)))

    def request_refresh(self, instance: str, peer: str, families: Sequence[Family] = ()) -> None:
        """Send a peer a ROUTE-REFRESH, for all families where none is named (RFC 2918).

        None is sent without an Established session, or without the capability. Raises
        `UnknownName`.
        """
        self._require(instance)
        self._inputs.feed(RequestRefresh(instance, peer, tuple(families)))

    def advertise_again(self, instance: str, peer: str) -> None:
        """See `SpeakerPort`."""
        self._require(instance)
        self._inputs.feed(AdvertiseAgain(instance, peer))

    def update_routes(self, instance: str, route_set: str, changes: RouteChanges) -> None:
        """See `speaker.api.SpeakerPort`."""
        self._require(instance)
        self._inputs.trace_links.note()
        self._inputs.feed(UpdateRoutes(instance, route_set, changes))

    def remove_route_set(self, instance: str, route_set: str) -> None:
        """See `speaker.api.SpeakerPort`."""
        self._inputs.trace_links.note()
        self._inputs.feed(RemoveRouteSet(instance, route_set))

    def update_local(self, instance: str, changes: RouteChanges) -> None:
        """See `speaker.api.SpeakerPort`; the first call of a loop turn sends before it returns."""
        self._require(instance)
        self._inputs.trace_links.note()
        self._inputs.feed_at_once(UpdateRoutes(instance, None, changes))

    def originates(self, instance: str, family: Family, nlri: bytes) -> bool:
        """Return whether a prefix, as on the wire, was announced by `update_local`."""
        return self._engine.views.originates(instance, family, nlri)

    def set_collectors(self, collectors: Sequence[BmpCollector]) -> None:
        """Connect to these monitoring stations and to no others (BMP, RFC 7854).

        Unchanged ones stay connected.
        """
        self._inputs.monitored = bool(collectors)
        self._inputs.feed_wall_clock()
        self._inputs.feed(SetCollectors(tuple(collectors)))

    def set_next_hop_metrics(self, instance: str, metrics: Mapping[str, int]) -> None:
        """See `speaker.api.SpeakerPort`."""
        self._require(instance)
        self._inputs.trace_links.note()
        self._inputs.feed(SetNextHopMetrics(instance, dict(metrics)))

    def follow_best_paths(self, instance: str, multipath: Multipath = ONE_PATH) -> BestPathReader:
        """See `speaker.api.SpeakerPort`."""
        inputs, number = self._inputs, next(self._readers)

        def close() -> None:
            del inputs.readers[number]
            inputs.feed(UnfollowBestPaths(number))

        reader = inputs.readers[number] = BestPathQueue(
            lambda batches: inputs.feed(BestPathsTaken(number, batches)), close
        )
        inputs.feed(FollowBestPaths(number, instance, multipath))
        return reader

    # ----------------------------------------------------------------- status

    def collectors(self) -> Sequence[CollectorStatus]:
        """Return the monitoring stations, by name."""
        now = self._inputs.now()
        to_wall = self._inputs.unix_time.offset()
        return [
            msgspec.structs.replace(status, since=status.since + to_wall)
            for status in self._engine.collectors(now)
        ]

    def peers(self) -> Sequence[PeerStatus]:
        """See `speaker.api.SpeakerPort`."""
        return list(self._statuses())

    def peer_slices(self) -> Iterator[Sequence[PeerStatus]]:
        """See `speaker.api.SpeakerPort`."""
        statuses = self._statuses()
        while part := list(itertools.islice(statuses, PEERS_PER_SLICE)):
            yield part

    def peer_counts(self) -> Sequence[PeerCounts]:
        """See `speaker.api.SpeakerPort`."""
        return self._engine.views.peer_counts()

    def _statuses(self) -> Iterator[PeerStatus]:
        now = self._inputs.now()
        to_wall = self._inputs.unix_time.offset()
        for status in self._engine.views.peers(now):
            yield msgspec.structs.replace(
                status,
                since=status.since + to_wall,
                reason=self._inputs.neighbors.error(status) or status.reason,
            )

    def instances(self) -> Sequence[InstanceStatus]:
        """See `speaker.api.SpeakerPort`."""
        return [
            self._inputs.listeners.complete(status) for status in self._engine.views.instances()
        ]

    def routes_available(
        self,
        instance: str,
        family: Family,
        prefixes: Iterable[bytes] | None = None,
        *,
        peer: str | None = None,
    ) -> Routes:
        """See `speaker.api.SpeakerPort`."""
        return self._engine.views.routes_available(instance, family, prefixes, peer=peer)

    def routes_advertised(
        self,
        instance: str,
        peer: str | None,
        family: Family,
        prefixes: Iterable[bytes] | None = None,
    ) -> Routes:
        """See `speaker.api.SpeakerPort`."""
        return self._engine.views.routes_advertised(instance, peer, family, prefixes)

    def routes_received(
        self,
        instance: str,
        peer: str | None,
        family: Family,
        prefixes: Iterable[bytes] | None = None,
    ) -> Routes:
        """See `speaker.api.SpeakerPort`."""
        return self._engine.views.routes_received(instance, peer, family, prefixes)
