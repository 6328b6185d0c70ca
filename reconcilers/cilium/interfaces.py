"""The addresses of network interfaces that contribute to a route set, and whether any is referenced."""

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
from resources.host.network import Device, advertisable
from speaker.nlri import Family

ADVERTISEMENT_TYPE = "Interface"


def contributions(
    device: Device, node: str, route_set: RouteSet
) -> Iterator[tuple[Family, bytes, Contribution]]:
    """Yield the host routes that an interface of the node contributes to a Cilium route set."""
    ref = ObjectRef(ADVERTISEMENT_TYPE, node, device.name)
    routes = [host_route(text) for text in advertisable(device)]
    for family, entries in route_set.entries.items():
        for entry in entries:
            if entry.type != ADVERTISEMENT_TYPE or entry.interface != device.name:
                continue
            contribution = Contribution(Origin(ref, entry.rule, entry.type), entry.attributes)
            for route_family, nlri in routes:
                if route_family == family:
                    yield family, nlri, contribution


def are_needed(
    advertisements: Iterable[CiliumBGPAdvertisement],
    peer_configs: Iterable[CiliumBGPPeerConfig],
    configs: Iterable[CiliumBGPClusterConfig | CiliumBGPNodeConfig],
) -> bool:
    """True if an object refers to an interface or a route of the host."""
    return (
        any(
            entry.advertisement_type == ADVERTISEMENT_TYPE
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
