"""Users of a namespace may write NetworkAttachmentDefinitions: none replaces another network."""

from __future__ import annotations

from typing import Any

from tests.reconcilers.ovnk.operator_cluster import (
    CLUSTER_NETWORKS,
    Cluster,
    advertisements,
    attachment,
    node,
    source,
)


def advertised(cluster: Cluster) -> set[str]:
    """Return the prefixes of what is generated."""
    cluster.write()
    routers = (router for spec in cluster.generated().values() for router in spec["bgp"]["routers"])
    return {prefix for router in routers for prefix in router.get("prefixes", ())}


def test_a_definition_of_another_network_than_its_owners_keeps_what_was_generated() -> None:
    red, blue = (
        attachment("red", "10.61.0.0/16/24"),
        attachment("blue", "10.62.0.0/16/24", labels={}),
    )
    w1 = node("w1", {"cluster_udn_red": ["10.61.3.0/24"], "cluster_udn_blue": ["10.62.3.0/24"]})
    row = advertisements(networkSelectors=[CLUSTER_NETWORKS])
    cluster = Cluster(w1, source(), red, blue, row)
    before = advertised(cluster)
    annotations = {"k8s.ovn.org/network-name": "cluster_udn_red", "k8s.ovn.org/network-id": "6"}
    metadata: dict[str, Any] = {**blue["metadata"], "labels": {"export": "yes"}}
    cluster.put({**blue, "metadata": {**metadata, "annotations": annotations}})
    (problem,) = cluster.operate().problems
    assert problem.message == "'cluster_udn_red' is not the network of its owner, cluster_udn_blue"
    assert cluster.condition().reason == "ConfigurationError"
    assert advertised(cluster) == before == {"10.61.3.0/24"}
