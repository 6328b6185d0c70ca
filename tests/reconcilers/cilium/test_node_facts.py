"""Nodes and CiliumNodes as one."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.cilium.default_router_id import router_id_of
from reconcilers.cilium.node_facts import merged_nodes, preferring
from reconcilers.node_addresses import next_hops_of
from resources.core import Node, NodeAddress, NodeStatus
from resources.meta import ObjectMeta
from tests.support import kinds


def _node(**metadata: Any) -> Node:  # noqa: ANN401
    return kinds.NODE.decode(
        {
            "metadata": {"name": "n", **metadata},
            "spec": {"podCIDRs": ["10.1.0.0/24"], "podCIDR": "10.1.0.0/24"},
            "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]},
        }
    )


def _united(node: Node | None, spec: dict[str, Any], **metadata: Any) -> Node:  # noqa: ANN401
    value = {"metadata": {"name": "n", **metadata}, "spec": spec}
    cilium_node = kinds.CILIUM_NODE.decode(value)
    return merged_nodes([node] if node is not None else [], [cilium_node])["n"]


def test_a_node_without_a_cilium_node_is_unchanged() -> None:
    assert merged_nodes([_node()], []) == {"n": _node()}


def test_pod_cidrs_come_from_ciliums_ipam() -> None:
    spec = {"ipam": {"podCIDRs": ["10.2.0.0/24", "fd00::/64"]}}
    assert _united(_node(), spec).pod_networks == ("10.2.0.0/24", "fd00::/64")
    # With pools of its own, Cilium uses no pod CIDR that Kubernetes gave the Node.
    assert _united(_node(), {}).pod_networks == ()


def test_labels_are_the_cilium_nodes_and_annotations_are_merged() -> None:
    node = _node(labels={"a": "1"}, annotations={"x": "node", "y": "node"})
    found = _united(node, {}, labels={"b": "2"}, annotations={"x": "cilium"})
    assert found.metadata.labels == {"b": "2"}
    assert found.metadata.annotations == {"x": "cilium", "y": "node"}


def test_a_cilium_node_without_a_node_is_merged_to_a_node() -> None:
    spec = {"addresses": [{"type": "InternalIP", "ip": "192.0.2.7"}]}
    found = _united(None, spec, labels={"b": "2"})
    assert found.status.addresses == (NodeAddress(type="InternalIP", address="192.0.2.7"),)
    assert found.metadata.labels == {"b": "2"}


def test_without_addresses_in_the_cilium_node_the_nodes_are_used() -> None:
    assert _united(_node(), {}).status == _node().status


def test_ciliums_internal_addresses_are_not_node_addresses() -> None:
    spec = {"addresses": [{"type": "CiliumInternalIP", "ip": "10.244.0.99"}]}
    assert _united(_node(), spec).status == _node().status


@pytest.mark.parametrize(
    ("chosen", "addresses"),
    [
        ((), ("192.0.2.1", "2001:db8::1")),
        (("10.0.0.0/8",), ("10.0.0.5", "2001:db8::1")),
        (("203.0.113.0/24",), ("203.0.113.7", "2001:db8::1")),
        (("172.16.0.0/12",), ("192.0.2.1", "2001:db8::1")),
        (("198.51.100.9", "fd00::/8"), ("198.51.100.9", "fd00::5")),
    ],
)
def test_the_address_of_a_node_can_be_chosen(
    chosen: tuple[str, ...], addresses: tuple[str, str]
) -> None:
    listed = ("192.0.2.1", "10.0.0.5", "2001:db8::1", "fd00::5")
    found = [NodeAddress(type="InternalIP", address=text) for text in listed]
    found.append(NodeAddress(type="ExternalIP", address="203.0.113.7"))
    node = preferring(
        Node(metadata=ObjectMeta(name="n"), status=NodeStatus(addresses=tuple(found))), chosen
    )
    hops = next_hops_of(node, "192.0.2.254")
    assert (router_id_of(node), hops[0].address) == addresses
