"""The pod CIDRs of the node that contribute to a route set, without aggregation."""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.cilium.route_sets import RouteSet
from reconcilers.model import Contribution, ObjectRef, Origin
from resources.core import Node
from speaker.nlri import Family, prefix_to_wire


def contributions(node: Node, route_set: RouteSet) -> Iterator[tuple[Family, bytes, Contribution]]:
    """Yield the pod CIDRs that a node contributes to a Cilium route set."""
    prefixes = [prefix_to_wire(text) for text in node.pod_networks]
    for family, entries in route_set.entries.items():
        for entry in entries:
            if entry.type == "PodCIDR":
                ref = ObjectRef("Node", "", node.metadata.name)
                origin = Origin(ref, entry.rule, entry.type)
                for prefix_family, nlri in prefixes:
                    if prefix_family == family:
                        yield family, nlri, Contribution(origin, entry.attributes)
