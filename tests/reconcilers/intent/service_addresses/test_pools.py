"""What a pool of MetalLB permits is the administrator's decision; its namespace counts nevertheless."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.dialect import Target
from resources.core.kinds import NAMESPACE
from speaker.nlri import prefix_to_wire
from tests.reconcilers.metallb.build import NODE, MetalLBNode
from tests.reconcilers.metallb.objects import advertisement, peer, pool
from tests.reconcilers.metallb.test_node_objects import service

PEER = "203.0.113.9"


def node(name: str, address: str, pods: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {"podCIDRs": [pods]},
        "status": {"addresses": [{"type": "InternalIP", "address": address}]},
    }


def metallb(*addresses: str) -> MetalLBNode:
    found = MetalLBNode()
    found.put(
        node(NODE, "198.18.30.1", "198.18.30.64/28"),
        node("n2", "198.18.30.2", "198.18.30.80/28"),
        peer("tor", PEER),
        pool("front", "198.18.30.0/24"),
        advertisement("plain"),
        *service("web", *addresses),
    )
    return found


@pytest.mark.parametrize("address", ["198.18.30.2", "198.18.30.81"])
def test_a_pool_may_have_addresses_of_other_nodes(address: str) -> None:
    assert metallb(address).routes() == {PEER: [f"{address}/32"]}


def test_the_addresses_of_this_node_are_not_advertised_as_before() -> None:
    found = metallb("198.18.30.1")
    assert found.routes() == {PEER: []}


def grant(found: MetalLBNode, namespace: str, prefixes: str) -> None:
    annotations = {"waggle.dev/service-addresses": prefixes}
    row = NAMESPACE.decode({"metadata": {"name": namespace, "annotations": annotations}})
    with found.db.write(found.tables.namespaces) as txn:
        found.tables.namespaces.upsert(txn, row)
    found.compiler.run()


def test_what_another_namespace_is_granted_leaves_a_shared_pool_shared() -> None:
    found = metallb("198.18.30.2")
    grant(found, "bank", "198.18.30.0/24")
    assert found.routes() == {PEER: ["198.18.30.2/32"]}


def test_an_annotation_narrows_what_pools_permit() -> None:
    found = metallb("198.18.30.2")
    grant(found, "shop", "198.18.31.0/24")
    assert found.routes() == {PEER: []}
    target = Target("198.18.30.2", prefix=prefix_to_wire("198.18.30.2/32"))
    parts = found.compiler.explainer().explain(target)
    assert {one.reason for part in parts for one in part if one.object} == {"NotInNamespace"}
