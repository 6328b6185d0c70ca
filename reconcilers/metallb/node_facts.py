"""Facts of a Node for MetalLB: whether it advertises Services. Pure."""

from __future__ import annotations

from typing import Final

from reconcilers.metallb.route_sets import Withheld
from resources.core import Node

EXCLUDE_LABEL: Final = "node.kubernetes.io/exclude-from-external-load-balancers"


def excluded_node(node: Node | None, ignore_label: bool) -> Withheld | None:
    """Return the fact for which a Node is excluded from advertising MetalLB's Services, or None."""
    if node is None:
        return None
    if node.network_unavailable:
        return ("NetworkUnavailable", "the node's condition NetworkUnavailable is True")
    if EXCLUDE_LABEL in node.metadata.labels and not ignore_label:
        return ("NodeExcluded", f"the node has the label {EXCLUDE_LABEL}")
    return None
