"""An agent that reads only its own node reports nothing about the rest of the cluster."""

from __future__ import annotations

from tests.reconcilers.build import NODE, Cluster, cluster_config, node, peer_config
from tests.reconcilers.cilium.v1.build import policy_object
from tests.support import kinds


def conditions(cluster: Cluster) -> list[tuple[str, str, str]]:
    cluster.run()
    return [
        (found["name"], found["type"].partition("/")[2], found["status"])
        for found in cluster.render()["conditions"]
    ]


def test_configurations_of_other_nodes_have_no_condition_no_matching_node() -> None:
    cluster = Cluster(operator=False)
    cluster.put(kinds.NODE, node())
    cluster.put(kinds.CLUSTER_CONFIG, cluster_config("ours"))
    other = cluster_config("theirs", nodeSelector={"matchLabels": {"rack": "z"}})
    cluster.put(kinds.CLUSTER_CONFIG, other)
    cluster.put(kinds.PEER_CONFIG, peer_config(authSecretRef="absent"))
    assert conditions(cluster) == []
    # What concerns this node is reported and applied.
    assert (f"CiliumBGPNodeConfig/{NODE}") in [
        f"{made['kind']}/{made['metadata']['name']}" for made in cluster.render()["generated"]
    ]


def test_conditions_of_policies_are_about_this_node() -> None:
    cluster = Cluster(operator=False)
    cluster.put(kinds.NODE, node(rack="a"))
    for name, rack in (("one", "a"), ("two", "a"), ("other", "z")):
        made = policy_object(name)
        made["spec"]["nodeSelector"] = {"matchLabels": {"rack": rack}}
        cluster.put(kinds.PEERING_POLICY, made)
    assert conditions(cluster) == [
        ("one", "ConflictingPeeringPolicy", "True"),
        ("two", "ConflictingPeeringPolicy", "True"),
    ]


def test_with_a_pool_a_node_allocates_no_router_id_itself() -> None:
    cluster = Cluster(operator=False, router_id_allocation_ip_pool="10.0.0.0/24")
    cluster.put(kinds.NODE, node())
    cluster.put(kinds.CLUSTER_CONFIG, cluster_config())
    cluster.run()
    assert cluster.render()["instances"] == []
    assert (f"CiliumBGPNodeConfig/{NODE}", "spec.bgpInstances[0].routerID") in cluster.problems()
    # The operator's NodeConfig has one.
    instance = {"name": "i", "localASN": 65001, "routerID": "10.0.0.7"}
    written = {"metadata": {"name": NODE}, "spec": {"bgpInstances": [instance]}}
    cluster.put(kinds.NODE_CONFIG, written)
    cluster.run()
    assert [i["routerID"] for i in cluster.render()["instances"]] == ["10.0.0.7"]
