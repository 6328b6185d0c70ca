"""Node (v1): labels, pod CIDRs, taints and addresses."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from resources.addresses import prefix_errors
from resources.errors import FieldError
from resources.meta import ObjectMeta, Resource, Struct


class Taint(Struct, frozen=True):
    """v1.Taint."""

    key: str
    effect: str = ""
    value: str = ""


class NodeSpec(Struct, frozen=True):
    """v1.NodeSpec."""

    pod_cidr: str | None = None
    pod_cidrs: tuple[str, ...] = ()
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeAddress(Struct, frozen=True):
    """v1.NodeAddress; not validated, as a hostname is an address, too."""

    type: str
    address: str


class NodeCondition(Struct, frozen=True):
    """v1.NodeCondition, without its times: a heartbeat is no change of the row."""

    type: str = ""
    status: str = ""


class NodeStatus(Struct, frozen=True):
    """v1.NodeStatus."""

    addresses: tuple[NodeAddress, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()


class Node(Resource, frozen=True):
    """One node."""

    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    @property
    def pod_networks(self) -> tuple[str, ...]:
        """The Node's pod CIDRs; of the older field ``podCIDR`` if the list is empty."""
        if self.spec.pod_cidrs:
            return self.spec.pod_cidrs
        return (self.spec.pod_cidr,) if self.spec.pod_cidr else ()

    @property
    def network_unavailable(self) -> bool:
        """True if the Node's condition NetworkUnavailable is True."""
        return any(
            c.type == "NetworkUnavailable" and c.status == "True" for c in self.status.conditions
        )


def of_other_nodes(node: Node) -> Node:
    """Return what an agent stores of another Node: its name, pod CIDRs and addresses."""
    return Node(
        metadata=ObjectMeta(name=node.metadata.name),
        spec=NodeSpec(pod_cidrs=node.pod_networks),
        status=NodeStatus(addresses=node.status.addresses),
    )


def node_errors(node: Node) -> Iterator[FieldError]:
    """Yield the rules that a Node breaks, and a schema cannot express."""
    yield from prefix_errors(node.spec.pod_cidr or None, "spec.podCIDR")
    for i, cidr in enumerate(node.spec.pod_cidrs):
        yield from prefix_errors(cidr, f"spec.podCIDRs[{i}]")
