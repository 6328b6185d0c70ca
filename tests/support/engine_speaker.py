"""A speaker without sockets: the real engine on wires in memory, behind `speaker.api.SpeakerPort`.

Reads are the engine's own. Calls are recorded, and fail where the test wants them to.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from speaker.api import (
    ONE_PATH,
    BestPathReader,
    DynamicPeerConfig,
    InstanceConfig,
    InstanceStatus,
    Multipath,
    PathDown,
    PeerConfig,
    PeerCounts,
    PeerStatus,
    Routes,
)
from speaker.api.port import RouteChanges
from speaker.engine import Engine
from speaker.engine.configuration import ConfigurationReads
from speaker.engine.inputs import (
    AdvertiseAgain,
    BestPathsTaken,
    FollowBestPaths,
    Input,
    PathsDown,
    RemoveInstance,
    RemovePeer,
    RemoveRouteSet,
    RequestRefresh,
    ResetPeer,
    SetInstance,
    SetNextHopMetrics,
    SetPeer,
    UnfollowBestPaths,
    UpdateRoutes,
)
from speaker.nlri import Family, prefix_to_text
from speaker.peer.actions import SendBestPaths
from speaker.server.best_path_queue import BestPathQueue
from tests.speaker.network import Host, Network


class EngineSpeaker(ConfigurationReads):
    """A host of a network, as apply drives it."""

    def __init__(self, network: Network | None = None, address: str = "192.0.2.1") -> None:
        self.network = network or Network()
        self.host = Host(self.network, "agent", address, Engine(random.Random(1)), listens=False)  # noqa: S311
        self.network.hosts[address] = self.host
        self.calls: list[tuple[Any, ...]] = []
        """Method, instance, and the name or the changed prefixes (text -> announced?)."""
        self.failing: set[str] = set()
        """Names of instances, peers and route sets, and prefixes, whose calls raise OSError."""
        self.interrupt = False
        """Whether the next call is interrupted by a BaseException, as by a cancelled task."""
        self.queues: dict[int, BestPathQueue] = {}
        """The readers of best paths, by number."""
        self._readers = 0
        super().__init__(self.host.engine)

    def take(self) -> list[tuple[Any, ...]]:
        """Return the calls since the last `take`."""
        calls, self.calls = self.calls, []
        return calls

    def call(self, item: Input, *record: Any) -> None:  # noqa: ANN401
        """Record a call and carry it out; raises where the test wants it to."""
        if self.interrupt:
            raise KeyboardInterrupt
        last = record[-1]
        names = set(last) if isinstance(last, dict) else {last}
        if names & self.failing:
            raise OSError("no")
        self.calls.append(record)
        self.host.give(item)

    def set_instance(self, config: InstanceConfig) -> None:
        self.call(SetInstance(config), "set_instance", config.name)

    def remove_instance(self, name: str) -> None:
        self.call(RemoveInstance(name), "remove_instance", name)

    def set_peer(self, instance: str, config: PeerConfig | DynamicPeerConfig) -> None:
        self.call(SetPeer(instance, config), "set_peer", instance, config.name)

    def remove_peer(self, instance: str, name: str) -> None:
        self.call(RemovePeer(instance, name), "remove_peer", instance, name)

    def reset_peer(self, instance: str, peer: str, communication: str = "") -> None:
        self.call(ResetPeer(instance, peer, communication), "reset_peer", instance, peer)

    def request_refresh(self, instance: str, peer: str, families: Sequence[Family] = ()) -> None:
        self.call(RequestRefresh(instance, peer, (*families,)), "request_refresh", instance, peer)

    def advertise_again(self, instance: str, peer: str) -> None:
        self.call(AdvertiseAgain(instance, peer), "advertise_again", instance, peer)

    def paths_down(self, paths: Sequence[PathDown]) -> None:
        self.call(PathsDown((*paths,)), "paths_down", *(path.peer for path in paths))

    def update_routes(self, instance: str, route_set: str, changes: RouteChanges) -> None:
        changed = {
            prefix_to_text(family, nlri): value is not None
            for family, rows in changes.items()
            for nlri, value in rows.items()
        }
        self.call(UpdateRoutes(instance, route_set, changes), "update_routes", instance, changed)

    def remove_route_set(self, instance: str, route_set: str) -> None:
        self.call(RemoveRouteSet(instance, route_set), "remove_route_set", instance, route_set)

    def update_local(self, instance: str, changes: RouteChanges) -> None:
        self.call(UpdateRoutes(instance, None, changes), "update_local", instance, dict(changes))

    def set_next_hop_metrics(self, instance: str, metrics: Mapping[str, int]) -> None:
        self.call(SetNextHopMetrics(instance, metrics), "set_next_hop_metrics", instance)

    def follow_best_paths(self, instance: str, multipath: Multipath = ONE_PATH) -> BestPathReader:
        number = self._readers = self._readers + 1
        queue = BestPathQueue(
            lambda batches: self._give(BestPathsTaken(number, batches)),
            lambda: self._give(UnfollowBestPaths(number)),
        )
        self.call(FollowBestPaths(number, instance, multipath), "follow_best_paths", instance)
        self.queues[number] = queue
        return queue

    def deliver(self) -> None:
        """Give the readers of best paths what the engine has sent them."""
        streamed, self.host.streamed = self.host.streamed, []
        for action in streamed:
            queue = self.queues[action.reader]
            if isinstance(action, SendBestPaths):
                queue.put(action.items)
            else:
                queue.end()

    def _give(self, item: Input) -> None:
        self.host.give(item)

    def peers(self) -> Sequence[PeerStatus]:
        return list(self.host.engine.views.peers(self.network.now))

    def peer_slices(self) -> Iterator[Sequence[PeerStatus]]:
        yield self.peers()

    def peer_counts(self) -> Sequence[PeerCounts]:
        return self.host.engine.views.peer_counts()

    def instances(self) -> Sequence[InstanceStatus]:
        return list(self.host.engine.views.instances())

    def routes_available(
        self,
        instance: str,
        family: Family,
        prefixes: Iterable[bytes] | None = None,
        *,
        peer: str | None = None,
    ) -> Routes:
        return self.host.engine.views.routes_available(instance, family, prefixes, peer=peer)

    def routes_advertised(
        self,
        instance: str,
        peer: str | None,
        family: Family,
        prefixes: Iterable[bytes] | None = None,
    ) -> Routes:
        return self.host.engine.views.routes_advertised(instance, peer, family, prefixes)

    def routes_received(
        self,
        instance: str,
        peer: str | None,
        family: Family,
        prefixes: Iterable[bytes] | None = None,
    ) -> Routes:
        return self.host.engine.views.routes_received(instance, peer, family, prefixes)
