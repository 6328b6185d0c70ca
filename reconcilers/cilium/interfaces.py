"""The addresses of network interfaces that contribute to a route set."""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.cilium.route_sets import RouteSet
from reconcilers.model import Contribution, ObjectRef, Origin
from reconcilers.prefixes import host_route
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
