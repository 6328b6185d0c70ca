"""What a node has of pod IP pools (Cilium's multi-pool IPAM), and what of it a route set is told.

The prefixes are those of the CiliumNode, the selectors look at the pool's labels and at two reserved
keys. What was allocated from a pool that is gone is told no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconcilers.intent.cilium.policy import RouteSet
from reconcilers.model import Contribution, ObjectRef, Origin, Source
from resources.cilium import CiliumNode, CiliumPodIPPool
from speaker.nlri import Family, prefix_to_wire

ENTRY = "CiliumPodIPPool"
NAME_KEY = "io.cilium.podippool.name"
NAMESPACE_KEY = "io.cilium.podippool.namespace"


def pool_labels(pool: CiliumPodIPPool) -> dict[str, str]:
    """Say what selectors see of a pool."""
    meta = pool.metadata
    return {**meta.labels, NAME_KEY: meta.name, NAMESPACE_KEY: meta.namespace}


def contributions(
    node: CiliumNode, pools: Mapping[str, CiliumPodIPPool], route_set: RouteSet
) -> Iterator[tuple[ObjectRef, Family, bytes, Contribution]]:
    """Tell the prefixes of one node in one set, with the pool that each is from."""
    for allocation in node.spec.ipam.pools.allocated:
        pool = pools.get(allocation.pool)
        if pool is None:
            continue
        ref = ObjectRef(ENTRY, "", pool.metadata.name)
        labels = pool_labels(pool)
        prefixes = [prefix_to_wire(text) for text in allocation.cidrs]
        for family, entries in route_set.entries.items():
            for entry in entries:
                if entry.type != ENTRY or entry.selector is None:
                    continue
                if entry.selector.matches(labels):
                    part = Contribution(
                        Source.POD_IP_POOL, Origin(ref, entry.rule), entry.attributes
                    )
                    for prefix_family, nlri in prefixes:
                        if prefix_family == family:
                            yield ref, family, nlri, part
