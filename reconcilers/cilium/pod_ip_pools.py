"""The prefixes that pod IP pools (Cilium's multi-pool IPAM) contribute to a route set.

The prefixes come from the CiliumNode; selectors match the pool's labels and two reserved keys.
Prefixes of a deleted pool are withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.cilium.route_sets import RouteSet
from reconcilers.model import Contribution, ObjectRef, Origin
from resources.cilium import CiliumNode, CiliumPodIPPool
from speaker.nlri import Family, prefix_to_wire

ADVERTISEMENT_TYPE = "CiliumPodIPPool"
NAME_KEY = "io.cilium.podippool.name"
NAMESPACE_KEY = "io.cilium.podippool.namespace"


def pool_labels(pool: CiliumPodIPPool) -> dict[str, str]:
    """Return a CiliumPodIPPool's labels with the two reserved keys."""
    meta = pool.metadata
    return {**meta.labels, NAME_KEY: meta.name, NAMESPACE_KEY: meta.namespace}


def contributions(
    node: CiliumNode, pool: CiliumPodIPPool, route_set: RouteSet
) -> Iterator[tuple[Family, bytes, Contribution]]:
    """Yield the prefixes of a CiliumPodIPPool that a node was allocated, in one route set."""
    ref = ObjectRef(ADVERTISEMENT_TYPE, "", pool.metadata.name)
    labels = pool_labels(pool)
    prefixes = [
        prefix_to_wire(text)
        for allocation in node.spec.ipam.pools.allocated
        if allocation.pool == pool.metadata.name
        for text in allocation.cidrs
    ]
    for family, entries in route_set.entries.items():
        for entry in entries:
            if entry.type != ADVERTISEMENT_TYPE or entry.selector is None:
                continue
            if entry.selector.matches(labels):
                contribution = Contribution(Origin(ref, entry.rule, entry.type), entry.attributes)
                for prefix_family, nlri in prefixes:
                    if prefix_family == family:
                        yield family, nlri, contribution
