"""Users of a namespace may write NetworkAttachmentDefinitions: of no network are they the owners.

A definition has an effect where OVN-Kubernetes would write it for its ClusterUserDefinedNetwork.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.reconcilers.ovnk.operator_cluster import (
    CLUSTER_NETWORKS,
    Cluster,
    advertisements,
    attachment,
    node,
    source,
)

Json = dict[str, Any]
W1 = node("w1", {"cluster_udn_red": ["10.61.3.0/24"], "cluster_udn_evil": ["192.0.2.0/24"]})
RED = attachment("red", "10.61.0.0/16/24")


def cluster_network(name: str, **spec: Any) -> Json:  # noqa: ANN401
    layer3 = {"role": "Primary", "subnets": [{"cidr": "10.61.0.0/16"}]}
    network = {"topology": "Layer3", "layer3": layer3}
    return {
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "ClusterUserDefinedNetwork",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"namespaceSelector": {}, "network": network, **spec},
    }


def namespace(name: str, **labels: str) -> Json:
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def changed(value: Json, **metadata: Any) -> Json:  # noqa: ANN401
    return {**value, "metadata": {**value["metadata"], **metadata}}


def advertised(cluster: Cluster) -> set[str]:
    """Return the prefixes of what is generated."""
    cluster.write()
    routers = (router for spec in cluster.generated().values() for router in spec["bgp"]["routers"])
    return {prefix for router in routers for prefix in router.get("prefixes", ())}


def of_tenant(**metadata: Any) -> Json:  # noqa: ANN401
    """Return the definition of a tenant, in a namespace that comes before that of the network."""
    forged = attachment("red", "192.0.2.0/24/25")
    return changed(forged, **{"namespace": "evil", **metadata})


FORGED = {
    "another uid": (
        of_tenant(ownerReferences=[{**RED["metadata"]["ownerReferences"][0], "uid": "guessed"}]),
        "ClusterUserDefinedNetwork/red has another uid",
    ),
    "another name": (
        of_tenant(name="second"),
        "definitions of ClusterUserDefinedNetwork/red have its name",
    ),
    "another namespace": (
        of_tenant(),
        "ClusterUserDefinedNetwork/red does not select namespace evil",
    ),
}


@pytest.mark.parametrize(("forged", "why"), FORGED.values(), ids=FORGED)
def test_a_definition_that_is_not_that_of_its_owner_has_no_effect(forged: Json, why: str) -> None:
    selects = {"matchLabels": {"team": "red"}}
    objects = (
        namespace("red-ns", team="red"),
        namespace("evil", team="red" if "select" not in why else "evil"),
        cluster_network("red", namespaceSelector=selects),
        W1,
        source(),
        RED,
        advertisements(networkSelectors=[CLUSTER_NETWORKS]),
    )
    cluster = Cluster(*objects)
    before = advertised(cluster)
    assert before == {"10.61.3.0/24"}
    cluster.put(forged)
    (problem,) = cluster.operate().problems
    assert problem.message == f"it is not used: {why}"
    assert [ref.namespace for ref in problem.objects] == ["evil"]
    assert advertised(cluster) == before


def test_a_definition_without_its_owner_has_no_effect() -> None:
    forged = attachment("evil", "192.0.2.0/24/25")
    cluster = Cluster(W1, source(), forged, advertisements(networkSelectors=[CLUSTER_NETWORKS]))
    assert advertised(cluster) == {"192.0.2.0/24"}
    cluster.remove("ClusterUserDefinedNetwork", "evil")
    (problem,) = cluster.operate().problems
    assert problem.message == "it is not used: there is no ClusterUserDefinedNetwork/evil"
    assert advertised(cluster) == set()


def test_a_definition_of_another_network_than_its_owners_keeps_what_was_generated() -> None:
    blue = attachment("blue", "10.62.0.0/16/24", labels={})
    w1 = node("w1", {"cluster_udn_red": ["10.61.3.0/24"], "cluster_udn_blue": ["10.62.3.0/24"]})
    row = advertisements(networkSelectors=[CLUSTER_NETWORKS])
    cluster = Cluster(w1, source(), RED, blue, row)
    before = advertised(cluster)
    annotations = {"k8s.ovn.org/network-name": "cluster_udn_red", "k8s.ovn.org/network-id": "6"}
    cluster.put(changed(blue, annotations=annotations, labels={"export": "yes"}))
    (problem,) = cluster.operate().problems
    assert problem.message == "'cluster_udn_red' is not the network of its owner, cluster_udn_blue"
    assert cluster.condition().reason == "ConfigurationError"
    assert advertised(cluster) == before == {"10.61.3.0/24"}
