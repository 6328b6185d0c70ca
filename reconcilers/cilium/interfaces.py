"""The addresses of network interfaces that contribute to a route set."""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.cilium.route_sets import AdvertisementEntry, RouteSet
from reconcilers.dialect import Contributed
from reconcilers.model import ObjectRef
from reconcilers.prefixes import host_route
from resources.host.network import Device, advertisable

ADVERTISEMENT_TYPE = "Interface"


def contributions(device: Device, node: str, route_set: RouteSet) -> Iterator[Contributed]:
    """Return the host routes that an interface of the node contributes to a Cilium route set."""

    def selects(entry: AdvertisementEntry) -> bool:
        return entry.type == ADVERTISEMENT_TYPE and entry.interface == device.name

    routes = [host_route(text) for text in advertisable(device)]
    return route_set.contributed(ObjectRef(ADVERTISEMENT_TYPE, node, device.name), routes, selects)
