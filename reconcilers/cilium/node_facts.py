"""The cluster's nodes, each merged from its Node and its CiliumNode. Pure.

As in Cilium, labels and pod CIDRs come from the CiliumNode; without one, from the Node.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from resources.cilium import CiliumNode
from resources.cilium.kinds import CILIUM_NODE
from resources.core import Node, NodeAddress, NodeSpec, NodeStatus
from resources.tables import Tables
from statedb import Snapshot

NODE_ADDRESS_TYPES = ("InternalIP", "ExternalIP")
"""The node's own addresses; a CiliumNode has addresses of Cilium's interfaces beside them."""


def known_nodes(tables: Tables, snapshot: Snapshot) -> dict[str, Node]:
    """Return the facts of all nodes, by name: Nodes with their CiliumNodes."""
    return merged_nodes(tables.nodes.all(snapshot), tables.of(CILIUM_NODE).all(snapshot))


def merged_nodes(nodes: Iterable[Node], cilium_nodes: Iterable[CiliumNode]) -> dict[str, Node]:
    """Merge the facts in Nodes and CiliumNodes of one name, by name."""
    known = {node.metadata.name: node for node in nodes}
    for cilium_node in cilium_nodes:
        name = cilium_node.metadata.name
        known[name] = _merged(known.get(name), cilium_node)
    return known


def known_node(tables: Tables, snapshot: Snapshot, name: str) -> Node | None:
    """Return the facts of one node, from its Node and its CiliumNode, or None."""
    node = tables.nodes.get(snapshot, ("", name))
    cilium_node = tables.of(CILIUM_NODE).get(snapshot, ("", name))
    if cilium_node is None:
        return node
    return _merged(node, cilium_node)


def _merged(node: Node | None, cilium_node: CiliumNode) -> Node:
    metadata, ipam = cilium_node.metadata, cilium_node.spec.ipam
    addresses = tuple(
        NodeAddress(type=address.type, address=address.ip)
        for address in cilium_node.spec.addresses
        if address.type in NODE_ADDRESS_TYPES
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
        # With IPAM of its own Cilium ignores the pod CIDRs of the Node.
        spec=replace(node.spec, pod_cidr=None, pod_cidrs=ipam.pod_cidrs),
        status=replace(node.status, addresses=addresses or node.status.addresses),
    )


def addresses_of(cilium_node: CiliumNode | None) -> tuple[str, ...]:
    """Return a node's addresses among the facts in its CiliumNode, Cilium's interfaces included."""
    if cilium_node is None:
        return ()
    return tuple(address.ip for address in cilium_node.spec.addresses if address.ip)


def preferring(node: Node, chosen: Sequence[str]) -> Node:
    """Return the facts of a Cilium node with addresses within the prefixes ``chosen`` first, in order.

    An address that is chosen by itself is used also where the node does not report it.
    """
    first: list[NodeAddress] = []
    for text in chosen:
        network = ipaddress.ip_network(text)
        own = [
            replace(address, type=NODE_ADDRESS_TYPES[0])
            for address in node.status.addresses
            if address.type in NODE_ADDRESS_TYPES and _is_within(address.address, network)
        ]
        if not own and network.num_addresses == 1:
            own = [NodeAddress(type=NODE_ADDRESS_TYPES[0], address=str(network.network_address))]
        first += own
    if not first:
        return node
    return replace(node, status=replace(node.status, addresses=(*first, *node.status.addresses)))


def _is_within(text: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    try:
        return ipaddress.ip_address(text) in network
    except ValueError:
        return False
