"""The prefixes that pod IP pools (Cilium's multi-pool IPAM) contribute to a route set.

The prefixes come from the CiliumNode; selectors match the pool's labels and two reserved keys.
Prefixes of a deleted pool are withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.cilium.route_sets import AdvertisementEntry, RouteSet
from reconcilers.dialect import Contributed
from reconcilers.model import ObjectRef
from resources.cilium import CiliumNode, CiliumPodIPPool
from speaker.nlri import prefix_to_wire

ADVERTISEMENT_TYPE = "CiliumPodIPPool"
NAME_KEY = "io.cilium.podippool.name"
NAMESPACE_KEY = "io.cilium.podippool.namespace"


def pool_labels(pool: CiliumPodIPPool) -> dict[str, str]:
    """Return a CiliumPodIPPool's labels with the two reserved keys."""
    meta = pool.metadata
    return {**meta.labels, NAME_KEY: meta.name, NAMESPACE_KEY: meta.namespace}


def contributions(
    node: CiliumNode, pool: CiliumPodIPPool, route_set: RouteSet
) -> Iterator[Contributed]:
    """Return the prefixes of a CiliumPodIPPool that a node was allocated, in one route set."""
    labels = pool_labels(pool)
    prefixes = [
        prefix_to_wire(text)
        for allocation in node.spec.ipam.pools.allocated
        if allocation.pool == pool.metadata.name
        for text in allocation.cidrs
    ]

    def selects(entry: AdvertisementEntry) -> bool:
        selector = entry.selector if entry.type == ADVERTISEMENT_TYPE else None
        return selector is not None and selector.matches(labels)

    ref = ObjectRef(ADVERTISEMENT_TYPE, "", pool.metadata.name)
    return route_set.contributed(ref, prefixes, selects)
