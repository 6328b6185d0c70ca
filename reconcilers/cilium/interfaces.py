"""What the addresses of network interfaces contribute to a route set, and whether anybody asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconcilers.cilium.route_sets import RouteSet
from reconcilers.model import Contribution, ObjectRef, Origin
from reconcilers.prefixes import host_route
from resources.cilium import (
    CiliumBGPAdvertisement,
    CiliumBGPClusterConfig,
    CiliumBGPNodeConfig,
    CiliumBGPPeerConfig,
)
from resources.host.facts import Device, advertisable
from speaker.nlri import Family

ENTRY = "Interface"


def contributions(
    device: Device, node: str, route_set: RouteSet
) -> Iterator[tuple[Family, bytes, Contribution]]:
    """Yield the host routes of one of the node's interfaces in one set."""
    ref = ObjectRef(ENTRY, node, device.name)
    routes = [host_route(text) for text in advertisable(device)]
    for family, entries in route_set.entries.items():
        for entry in entries:
            if entry.type != ENTRY or entry.interface != device.name:
                continue
            part = Contribution(Origin(ref, entry.rule), entry.attributes)
            for route_family, nlri in routes:
                if route_family == family:
                    yield family, nlri, part


def are_needed(
    advertisements: Iterable[CiliumBGPAdvertisement],
    peer_configs: Iterable[CiliumBGPPeerConfig],
    configs: Iterable[CiliumBGPClusterConfig | CiliumBGPNodeConfig],
) -> bool:
    """Tell whether some object refers to what only the host knows."""
    return (
        any(
            entry.advertisement_type == ENTRY
            for advertisement in advertisements
            for entry in advertisement.spec.advertisements
        )
        or any(config.spec.transport.source_interface for config in peer_configs)
        or any(
            peer.auto_discovery is not None
            for config in configs
            for instance in config.spec.bgp_instances
            for peer in instance.peers
        )
    )
