"""The metrics of received next hops for route selection: what the host's own routes lead to. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from reconcilers.kernel.next_hops import is_of_host
from reconcilers.kernel.routing import NotKnown, Routing
from speaker.api import UNREACHABLE
from speaker.rib.usable_next_hop import is_link_local

Metrics: TypeAlias = dict[str, dict[str, int]]
"""Instance -> next hop as text -> metric; metrics of 0 are omitted."""


def next_hop_metrics(
    addresses: Iterable[str], vrf: str, routing: Routing, before: Mapping[str, int]
) -> dict[str, int]:
    """Return the metrics of next hops that a peer has announced, for route selection.

    A next hop whose route is not known yet has that of ``before``.
    """
    metrics = {}
    for text in addresses:
        metric = _metric(text, vrf, routing)
        metric = before.get(text, 0) if metric is None else metric
        if metric:
            metrics[text] = metric
    return metrics


def _metric(text: str, vrf: str, routing: Routing) -> int | None:
    """Return the metric of the route that leads to an address; None while it is not known."""
    address: bytes = ipaddress.ip_address(text).packed
    if is_link_local(address) or not is_of_host(address):
        return 0
    try:
        route = routing.lookup(vrf, address)
    except NotKnown:
        return None
    if route is None or not route.hops:
        return UNREACHABLE
    if not all(hop.gateway for hop in route.hops):
        return 0
    return route.metric
