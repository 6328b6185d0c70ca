"""What the addresses of network interfaces contribute to a route set, and whether anybody asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconcilers.intent.cilium.policy import RouteSet
from reconcilers.model import Contribution, ObjectRef, Origin, Source
from resources.cilium import (
    CiliumBGPAdvertisement,
    CiliumBGPClusterConfig,
    CiliumBGPNodeConfig,
    CiliumBGPPeerConfig,
)
from resources.host.facts import Host, advertisable
from speaker.nlri import Family, prefix_to_wire

ENTRY = "Interface"


def contributions(
    host: Host, node: str, route_set: RouteSet
) -> Iterator[tuple[ObjectRef, Family, bytes, Contribution]]:
    """Tell the host routes of one node's interfaces in one set."""
    for family, entries in route_set.entries.items():
        for entry in entries:
            if entry.type != ENTRY or entry.interface is None:
                continue
            device = host.device(entry.interface)
            if device is None:
                continue
            ref = ObjectRef("Interface", node, device.name)
            part = Contribution(Source.INTERFACE, Origin(ref, entry.rule), entry.attributes)
            for text in advertisable(device):
                length = 128 if ":" in text else 32
                prefix_family, nlri = prefix_to_wire(f"{text}/{length}")
                if prefix_family == family:
                    yield ref, family, nlri, part


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
