"""The cluster's nodes, from Nodes and CiliumNodes together.

Cilium goes by its own CiliumNode: its labels are selected on, its IPAM says which pod networks a node
has. Where there is none, the Node says it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from resources.cilium import CiliumNode
from resources.cilium.kinds import CILIUM_NODE
from resources.core import Node, NodeAddress, NodeSpec, NodeStatus
from resources.tables import Tables
from statedb import Snapshot

OF_THE_NODE = ("InternalIP", "ExternalIP")
"""The types of addresses by which others reach the node; a CiliumNode has Cilium's own beside them."""


def known_nodes(tables: Tables, snapshot: Snapshot) -> dict[str, Node]:
    """Return the nodes of the tables by name, each from its Node and its CiliumNode."""
    return united_nodes(tables.nodes.all(snapshot), tables.of(CILIUM_NODE).all(snapshot))


def united_nodes(nodes: Iterable[Node], cilium_nodes: Iterable[CiliumNode]) -> dict[str, Node]:
    """Return one Node for each node, from its Node and its CiliumNode, by name."""
    known = {node.metadata.name: node for node in nodes}
    for cilium_node in cilium_nodes:
        name = cilium_node.metadata.name
        known[name] = _united(known.get(name), cilium_node)
    return known


def known_node(tables: Tables, snapshot: Snapshot, name: str) -> Node | None:
    """Return one node, from its Node and its CiliumNode; None where there is neither."""
    node = tables.nodes.get(snapshot, ("", name))
    cilium_node = tables.of(CILIUM_NODE).get(snapshot, ("", name))
    if cilium_node is None:
        return node
    return _united(node, cilium_node)


def _united(node: Node | None, cilium_node: CiliumNode) -> Node:
    metadata, ipam = cilium_node.metadata, cilium_node.spec.ipam
    addresses = tuple(
        NodeAddress(type=address.type, address=address.ip)
        for address in cilium_node.spec.addresses
        if address.type in OF_THE_NODE
    )
    if node is None:
        return Node(
            metadata=metadata,
            spec=NodeSpec(pod_cidrs=ipam.pod_cidrs),
            status=NodeStatus(addresses=addresses),
        )
    return Node(
        metadata=replace(
            node.metadata,
            labels=metadata.labels,
            annotations={**node.metadata.annotations, **metadata.annotations},
        ),
        # Not the Node's: with pools of its own, Cilium leaves what the Node was given alone.
        spec=replace(node.spec, pod_cidr=None, pod_cidrs=ipam.pod_cidrs),
        status=replace(node.status, addresses=addresses or node.status.addresses),
    )
