"""The reads of a speaker's configuration: what its instances, peers and route sets are set to.

Reconcilers compare these with their desired state. The cost of a read is that of its answer: only
`ConfigurationReads.route_set_prefixes` walks a table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from speaker.api import DynamicPeerConfig, InstanceConfig, PeerConfig, RouteAttributes, RouteChanges
from speaker.engine.engine import Engine
from speaker.engine.instance.route_sets import RouteSets
from speaker.nlri import Family
from speaker.rib.local_routes import LOCAL, route_attributes
from speaker.rib.path import Path


class ConfigurationReads:
    """The part of `speaker.api.SpeakerPort` that reads configuration back from an engine."""

    def __init__(self, engine: Engine) -> None:
        self.__engine = engine

    def instance_configs(self) -> Mapping[str, InstanceConfig]:
        """See `speaker.api.SpeakerPort`."""
        engine = self.__engine
        return {name: engine.instance(name).config for name in engine.names()}

    def instance_config(self, name: str) -> InstanceConfig | None:
        """See `speaker.api.SpeakerPort`."""
        instance = self.__engine.find(name)
        return None if instance is None else instance.config

    def peer_configs(self, instance: str) -> Mapping[str, PeerConfig | DynamicPeerConfig]:
        """See `speaker.api.SpeakerPort`."""
        known = self.__engine.find(instance)
        if known is None:
            return {}
        configs: dict[str, PeerConfig | DynamicPeerConfig] = {
            config.name: config for config in known.dynamic()
        }
        for name, peer in known.peers.items():
            if peer.dynamic is None:
                configs[name] = peer.config
        return configs

    def peer_config(self, instance: str, name: str) -> PeerConfig | DynamicPeerConfig | None:
        """See `speaker.api.SpeakerPort`."""
        known = self.__engine.find(instance)
        if known is None:
            return None
        peer = known.peers.get(name)
        if peer is not None and peer.dynamic is None:
            return peer.config
        return next((config for config in known.dynamic() if config.name == name), None)

    def route_sets(self, instance: str) -> Sequence[str]:
        """See `speaker.api.SpeakerPort`."""
        known = self.__engine.find(instance)
        return () if known is None else known.outbound.route_sets.names()

    def route_set_prefixes(
        self, instance: str, route_set: str
    ) -> Mapping[Family, Sequence[bytes]] | None:
        """See `speaker.api.SpeakerPort`."""
        sets = self.__route_sets(instance)
        ribs = None if sets is None else sets.find(route_set)
        if sets is None or ribs is None:
            return None
        return {family: sets.prefixes(route_set, family) for family in ribs}

    def routes_of_set(
        self, instance: str, route_set: str, prefixes: Mapping[Family, Collection[bytes]]
    ) -> RouteChanges | None:
        """See `speaker.api.SpeakerPort`."""
        sets = self.__route_sets(instance)
        ribs = None if sets is None else sets.find(route_set)
        if sets is None or ribs is None:
            return None
        # Prefixes share their paths, so that one conversion serves many.
        converted: dict[Path, RouteAttributes] = {}
        routes: dict[Family, dict[bytes, RouteAttributes | None]] = {}
        for family, wanted in prefixes.items():
            table = ribs.tables.get(family)
            rows: dict[bytes, RouteAttributes | None] = dict.fromkeys(wanted)
            routes[family] = rows
            if table is None:
                continue
            remaining = sets.remaining(route_set, family, rows) if sets.removals else rows
            for prefix in remaining:
                path = table.path_of(LOCAL, prefix)
                if path is None:
                    continue
                attributes = converted.get(path)
                if attributes is None:
                    attributes = converted[path] = route_attributes(path)
                rows[prefix] = attributes
        return routes

    def __route_sets(self, instance: str) -> RouteSets | None:
        known = self.__engine.find(instance)
        return None if known is None else known.outbound.route_sets
