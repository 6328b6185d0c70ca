"""The pod CIDRs of the node that contribute to a route set, without aggregation."""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.cilium.route_sets import RouteSet
from reconcilers.dialect import Contributed
from reconcilers.model import ObjectRef
from resources.core import Node
from speaker.nlri import prefix_to_wire


def contributions(node: Node, route_set: RouteSet) -> Iterator[Contributed]:
    """Return the pod CIDRs that a node contributes to a Cilium route set."""
    ref = ObjectRef("Node", "", node.metadata.name)
    prefixes = [prefix_to_wire(text) for text in node.pod_networks]
    return route_set.contributed(ref, prefixes, lambda entry: entry.type == "PodCIDR")
