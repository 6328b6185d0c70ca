"""A speaker without sockets: its sessions are Established at once, its routes are those it is given."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from speaker.api import (
    ESTABLISHED,
    ONE_PATH,
    BestPathReader,
    DynamicPeerConfig,
    FamilyStatus,
    InstanceConfig,
    InstanceStatus,
    Multipath,
    PathDown,
    PeerConfig,
    PeerCounts,
    PeerStatus,
    RouteAttributes,
    Routes,
    RouteView,
)
from speaker.api.port import RouteChanges
from speaker.nlri import IPV4_UNICAST, Family, prefix_to_text
from speaker.server.best_path_queue import BestPathQueue


class StandInSpeaker:
    """A `speaker.api.SpeakerPort`; it derives from nothing."""

    def __init__(self) -> None:
        self._instances: dict[str, InstanceConfig] = {}
        self._peers: dict[tuple[str, str], PeerConfig] = {}
        self._routes: dict[tuple[str, str], dict[Family, dict[bytes, RouteAttributes]]] = {}

    def set_instance(self, config: InstanceConfig) -> None:
        self._instances[config.name] = config

    def remove_instance(self, name: str) -> None:
        del self._instances[name]

    def set_peer(self, instance: str, config: PeerConfig | DynamicPeerConfig) -> None:
        assert isinstance(config, PeerConfig)
        self._peers[instance, config.name] = config

    def remove_peer(self, instance: str, name: str) -> None:
        del self._peers[instance, name]

    def reset_peer(self, instance: str, peer: str, communication: str = "") -> None:
        raise NotImplementedError

    def request_refresh(self, instance: str, peer: str, families: Sequence[Family] = ()) -> None:
        raise NotImplementedError

    def advertise_again(self, instance: str, peer: str) -> None:
        raise NotImplementedError

    def paths_down(self, paths: Sequence[PathDown]) -> None:
        raise NotImplementedError

    def update_routes(self, instance: str, route_set: str, changes: RouteChanges) -> None:
        held = self._routes.setdefault((instance, route_set), {})
        for family, routes in changes.items():
            for nlri, attributes in routes.items():
                if attributes is None:
                    held.get(family, {}).pop(nlri, None)
                else:
                    held.setdefault(family, {})[nlri] = attributes

    def remove_route_set(self, instance: str, route_set: str) -> None:
        self._routes.pop((instance, route_set), None)

    def update_local(self, instance: str, changes: RouteChanges) -> None:
        raise NotImplementedError

    def set_next_hop_metrics(self, instance: str, metrics: Mapping[str, int]) -> None:
        raise NotImplementedError

    def follow_best_paths(self, instance: str, multipath: Multipath = ONE_PATH) -> BestPathReader:
        del instance, multipath
        return BestPathQueue(lambda _: None, lambda: None)

    def instance_configs(self) -> Mapping[str, InstanceConfig]:
        return dict(self._instances)

    def instance_config(self, name: str) -> InstanceConfig | None:
        return self._instances.get(name)

    def peer_configs(self, instance: str) -> Mapping[str, PeerConfig]:
        return {name: peer for (owner, name), peer in self._peers.items() if owner == instance}

    def peer_config(self, instance: str, name: str) -> PeerConfig | None:
        return self._peers.get((instance, name))

    def route_sets(self, instance: str) -> Sequence[str]:
        return [name for owner, name in self._routes if owner == instance]

    def route_set_prefixes(
        self, instance: str, route_set: str
    ) -> Mapping[Family, Sequence[bytes]] | None:
        held = self._routes.get((instance, route_set))
        return None if held is None else {family: list(held[family]) for family in held}

    def routes_of_set(
        self, instance: str, route_set: str, prefixes: Mapping[Family, Collection[bytes]]
    ) -> RouteChanges | None:
        held = self._routes.get((instance, route_set))
        if held is None:
            return None
        return {
            family: {nlri: held.get(family, {}).get(nlri) for nlri in asked}
            for family, asked in prefixes.items()
        }

    def peers(self) -> Sequence[PeerStatus]:
        return [self._status(instance, peer) for (instance, _), peer in self._peers.items()]

    def peer_slices(self) -> Iterator[Sequence[PeerStatus]]:
        yield self.peers()

    def peer_counts(self) -> Sequence[PeerCounts]:
        raise NotImplementedError

    def instances(self) -> Sequence[InstanceStatus]:
        return [
            InstanceStatus(
                name=config.name,
                local_asn=config.local_asn,
                router_id=config.router_id,
                vrf=None,
                listening=(),
                listen_error=None,
                peers=len(self._peers),
                refused=0,
            )
            for config in self._instances.values()
        ]

    def routes_available(
        self,
        instance: str,
        family: Family,
        prefixes: Iterable[bytes] | None = None,
        *,
        peer: str | None = None,
    ) -> Routes:
        del instance, family, prefixes, peer
        return Routes(iter(()))

    def routes_advertised(
        self,
        instance: str,
        peer: str | None,
        family: Family,
        prefixes: Iterable[bytes] | None = None,
    ) -> Routes:
        return Routes(iter([list(self._advertised(instance, peer, family, prefixes))]))

    def _advertised(
        self,
        instance: str,
        peer: str | None,
        family: Family,
        prefixes: Iterable[bytes] | None,
    ) -> Iterator[RouteView]:
        for (owner, name), config in self._peers.items():
            if owner == instance and peer in (None, name):
                held = self._routes.get((owner, config.route_set or ""), {})
                routes = held.get(family, {})
                for nlri in routes if prefixes is None else filter(routes.__contains__, prefixes):
                    yield self._view(name, family, nlri)

    def routes_received(
        self,
        instance: str,
        peer: str | None,
        family: Family,
        prefixes: Iterable[bytes] | None = None,
    ) -> Routes:
        del instance, peer, family, prefixes
        return Routes(iter(()))

    def _view(self, peer: str, family: Family, nlri: bytes) -> RouteView:
        return RouteView(
            family=family,
            prefix=prefix_to_text(family, nlri),
            next_hop=None,
            as_path="",
            origin="IGP",
            med=None,
            local_preference=None,
            communities=(),
            large_communities=(),
            extended_communities=(),
            peer=peer,
            best=True,
            reason="",
        )

    def _status(self, instance: str, peer: PeerConfig) -> PeerStatus:
        advertised = sum(1 for _ in self.routes_advertised(instance, peer.name, IPV4_UNICAST))
        return PeerStatus(
            instance=instance,
            name=peer.name,
            address=peer.address,
            interface=None,
            port=179,
            local_address=None,
            local_asn=65000,
            peer_asn=65001,
            state=ESTABLISHED,
            reason="",
            since=1000.0,
            families=(
                FamilyStatus(
                    family=IPV4_UNICAST,
                    negotiated=True,
                    received=0,
                    accepted=0,
                    advertised=advertised,
                ),
            ),
            peer_router_id="192.0.2.1",
            hold_time=90,
            keepalive_time=30,
            retry_in=None,
            capabilities=(),
            last_error=None,
            flaps=0,
            messages_received=0,
            messages_sent=0,
            updates_received=0,
            updates_sent=0,
            queued_octets=0,
            authentication=None,
            graceful_restart_time=None,
            dynamic=False,
            route_set=peer.route_set,
            initial_table_sent=True,
        )
