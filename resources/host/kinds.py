"""The kind that describes a node's network in manifests."""

from __future__ import annotations

from resources.host.nodenetwork import NodeNetwork, node_network_errors
from resources.kind import Kind

NODE_NETWORK = Kind(
    "NodeNetwork",
    NodeNetwork,
    group="waggle.dev",
    versions=("v1alpha1",),
    namespaced=False,
    errors=node_network_errors,
    strict=True,
    table="node-networks",
)
