"""What the operator writes: NodeConfigs of selected nodes, deletions of its own, and conditions."""

from __future__ import annotations

import ipaddress
from typing import Any

from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.cilium.options import CiliumOperatorOptions
from reconcilers.model import ObjectRef
from reconcilers.operator import Apply, Delete, Plan, Planner
from reconcilers.sliced_work import finish
from tests.reconcilers import build
from tests.reconcilers.build import Cluster, cluster_config, node, peer_config
from tests.support import kinds

NODE_CONFIG = "CiliumBGPNodeConfig"


def ref(name: str, kind: str = NODE_CONFIG) -> ObjectRef:
    return ObjectRef(kind, "", name)


def config(name: str = "c", uid: str = "uid-c", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    value = cluster_config(name, **spec)
    value["metadata"]["uid"] = uid
    return value


def cluster(*configs: dict[str, Any]) -> Cluster:
    found = Cluster()
    found.put(kinds.NODE, node("n1"))
    found.put(kinds.NODE, node("n2", rack="b"))
    found.put(kinds.PEER_CONFIG, peer_config())
    for value in configs or (config(),):
        found.put(kinds.CLUSTER_CONFIG, value)
    return found


def plan(found: Cluster, *, report: bool = True) -> Plan:
    result = finish(Planner(found.db, [found.dialect], "kube-system", report=report).plan())
    assert result is not None
    return result


def write(found: Cluster, made: Plan) -> None:
    """Let the API server have it, and give each object a UID."""
    for one in made.objects:
        if isinstance(one, Delete):
            found.delete(kinds.NODE_CONFIG, one.object.name)
        else:
            metadata = {**one.content["metadata"], "uid": f"uid-{one.object.name}"}
            found.put(kinds.NODE_CONFIG, {**one.content, "metadata": metadata})


def condition(made: Plan, name: str, kind: str = "CiliumBGPClusterConfig") -> dict[str, bool]:
    return {c.type.partition("/")[2]: c.status for c in made.conditions[ref(name, kind)]}


def test_nothing_is_planned_before_every_source_is_synced() -> None:
    found = cluster()
    waiting = found.resources.nodes.register_initializer("source")
    planner = Planner(found.db, [found.dialect], "kube-system")
    assert finish(planner.plan()) is None
    with found.db.write(found.resources.nodes) as txn:
        waiting(txn)
    assert finish(planner.plan()) is not None


def test_each_selected_node_gets_a_node_config_that_its_cluster_config_controls() -> None:
    first, second = plan(cluster()).objects
    assert isinstance(first, Apply)
    assert (first.object, second.object) == (ref("n1"), ref("n2"))
    assert first.content["metadata"] == {
        "name": "n1",
        "ownerReferences": [
            {
                "apiVersion": "cilium.io/v2",
                "kind": "CiliumBGPClusterConfig",
                "name": "c",
                "uid": "uid-c",
                "controller": True,
            }
        ],
    }
    assert first.content["apiVersion"] == "cilium.io/v2"
    assert first.content["kind"] == NODE_CONFIG
    (instance,) = first.content["spec"]["bgpInstances"]
    assert (instance["name"], instance["localASN"]) == ("i", 65001)


def test_current_objects_are_not_written_again() -> None:
    found = cluster()
    write(found, plan(found))
    made = plan(found)
    assert made.objects == ()
    assert made.problems == ()


def test_a_change_of_the_cluster_config_or_of_the_override_is_written() -> None:
    found = cluster()
    write(found, plan(found))
    override = {
        "metadata": {"name": "n2"},
        "spec": {"bgpInstances": [{"name": "i", "routerID": "192.0.2.77"}]},
    }
    found.put(kinds.NODE_CONFIG_OVERRIDE, override)
    (changed,) = plan(found).objects
    assert isinstance(changed, Apply)
    assert changed.object == ref("n2")
    assert changed.content["spec"]["bgpInstances"][0]["routerID"] == "192.0.2.77"
    found.put(kinds.CLUSTER_CONFIG, config(peers=[]))
    assert [one.object.name for one in plan(found).objects] == ["n1", "n2"]


def test_a_node_config_is_deleted_when_its_node_is_not_selected_any_more() -> None:
    found = cluster()
    write(found, plan(found))
    found.put(kinds.CLUSTER_CONFIG, config(nodeSelector={"matchLabels": {"rack": "b"}}))
    assert plan(found).objects == (Delete(ref("n1"), "uid-n1"),)


def test_c45_without_a_selected_node_node_configs_are_deleted_and_the_condition_is_true() -> None:
    found = cluster()
    write(found, plan(found))
    found.put(kinds.CLUSTER_CONFIG, config(nodeSelector={"matchLabels": {"rack": "z"}}))
    made = plan(found)
    assert made.objects == (Delete(ref("n1"), "uid-n1"), Delete(ref("n2"), "uid-n2"))
    assert condition(made, "c")["NoMatchingNode"] is True


def test_node_configs_of_a_deleted_cluster_config_are_left_to_garbage_collection() -> None:
    found = cluster()
    write(found, plan(found))
    found.delete(kinds.CLUSTER_CONFIG, "c")
    assert plan(found).objects == ()
    # A new object of the same name: what there is belongs to its predecessor.
    found.put(kinds.CLUSTER_CONFIG, config(uid="uid-new"))
    applied = plan(found).objects
    assert [type(one) for one in applied] == [Apply, Apply]


def test_a_users_node_config_is_left_unchanged() -> None:
    found = cluster()
    found.put(
        kinds.NODE_CONFIG,
        {"metadata": {"name": "n1", "uid": "x"}, "spec": {"bgpInstances": [{"name": "mine"}]}},
    )
    made = plan(found)
    assert [one.object.name for one in made.objects] == ["n2"]
    (problem,) = made.problems
    assert problem.message == "the NodeConfig of node n1 is there already and is left as it is"
    found.delete(kinds.CLUSTER_CONFIG, "c")
    assert plan(found).objects == ()


def test_c49_the_owner_of_a_node_keeps_it_under_a_new_leader() -> None:
    found = cluster(config("young"))
    write(found, plan(found))
    old = config("old", "uid-old", nodeSelector={"matchLabels": {"rack": "b"}})
    old["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z"
    found.put(kinds.CLUSTER_CONFIG, old)
    # Each plan is made by an operator that remembers nothing.
    made = plan(found)
    assert made.objects == ()
    assert condition(made, "old")["ConflictingClusterConfig"] is True
    assert condition(made, "young")["ConflictingClusterConfig"] is False


def test_a_released_node_is_taken_over_in_one_write() -> None:
    found = cluster(config("a", "uid-a"), config("b", "uid-b"))
    write(found, plan(found))
    found.put(
        kinds.CLUSTER_CONFIG, config("a", "uid-a", nodeSelector={"matchLabels": {"rack": "b"}})
    )
    (taken,) = plan(found).objects
    assert isinstance(taken, Apply)
    assert taken.object == ref("n1")
    assert taken.content["metadata"]["ownerReferences"][0]["name"] == "b"


def test_missing_peer_configs_and_secrets_are_conditions() -> None:
    found = cluster()
    found.delete(kinds.PEER_CONFIG, "pc")
    made = plan(found)
    assert len(made.objects) == 2
    assert condition(made, "c")["MissingPeerConfigs"] is True
    found.put(kinds.PEER_CONFIG, peer_config(authSecretRef="key"))
    assert condition(plan(found), "pc", "CiliumBGPPeerConfig") == {"MissingAuthSecret": True}
    secret = {
        "metadata": {"name": "key", "namespace": "elsewhere"},
        "stringData": {"password": "x"},
    }
    found.put(kinds.SECRET, secret)
    assert condition(plan(found), "pc", "CiliumBGPPeerConfig") == {"MissingAuthSecret": True}
    secret["metadata"]["namespace"] = "kube-system"
    found.put(kinds.SECRET, secret)
    assert condition(plan(found), "pc", "CiliumBGPPeerConfig") == {"MissingAuthSecret": False}


def test_reasons_and_messages_of_conditions_are_ciliums() -> None:
    def conditions(found: Cluster, name: str, kind: str) -> list[tuple[bool, str, str]]:
        return [(c.status, c.reason, c.message) for c in plan(found).conditions[ref(name, kind)]]

    found = cluster()
    kind = "CiliumBGPPeerConfig"
    assert conditions(found, "pc", kind) == [(False, "AuthSecretNotConfigured", "")]
    found.put(kinds.PEER_CONFIG, peer_config(authSecretRef="key"))
    missing = 'Referenced Auth Secret "key" is missing'
    assert conditions(found, "pc", kind) == [(True, "AuthSecretMissing", missing)]
    metadata = {"name": "key", "namespace": "kube-system"}
    found.put(kinds.SECRET, {"metadata": metadata, "stringData": {"password": "x"}})
    assert conditions(found, "pc", kind) == [(False, "AuthSecretValidated", "")]
    found.delete(kinds.PEER_CONFIG, "pc")
    other = cluster_config()
    other["metadata"] = {**other["metadata"], "name": "z", "creationTimestamp": ""}
    found.put(kinds.CLUSTER_CONFIG, other)
    texts = {message for _, _, message in conditions(found, "z", "CiliumBGPClusterConfig")}
    assert "Selecting the same node(s) with ClusterConfig(s): [c]" in texts
    assert "Referenced CiliumBGPPeerConfig(s) are missing: [pc]" in texts


def test_c51_without_reports_conditions_are_removed() -> None:
    made = plan(cluster(), report=False)
    assert made.conditions == {
        ref("c", "CiliumBGPClusterConfig"): (),
        ref("pc", "CiliumBGPPeerConfig"): (),
    }


def test_c53_router_ids_from_a_pool_are_kept_by_a_new_leader() -> None:
    found = cluster()
    pool = ipaddress.IPv4Network("10.0.0.0/30")

    def given() -> dict[str, str]:
        options = CiliumOperatorOptions(router_id_allocation_ip_pool=str(pool))
        dialect = CiliumDialect(found.resources, options)
        made = finish(Planner(found.db, [dialect], "kube-system").plan())
        assert made is not None
        write(found, made)
        rows = found.resources.of(kinds.NODE_CONFIG).all(found.db.snapshot())
        return {row.metadata.name: row.spec.bgp_instances[0].router_id or "" for row in rows}

    assert given() == {"n1": "10.0.0.0", "n2": "10.0.0.1"}
    found.put(kinds.NODE, node("a-new-one"))
    assert given() == {"a-new-one": "10.0.0.2", "n1": "10.0.0.0", "n2": "10.0.0.1"}
    found.delete(kinds.NODE, "n1")
    assert given() == {"a-new-one": "10.0.0.2", "n2": "10.0.0.1"}
    found.put(kinds.NODE, node("n4"))
    assert given()["n4"] == "10.0.0.0"


def test_an_agent_with_an_api_server_takes_its_node_config_from_there() -> None:
    found = Cluster(operator=False)
    found.put(kinds.NODE, node(build.NODE))
    found.put(kinds.PEER_CONFIG, peer_config())
    found.put(kinds.CLUSTER_CONFIG, config())
    write(found, plan(found))
    found.put(kinds.CLUSTER_CONFIG, config(peers=[]))
    found.run()
    # The operator has not followed yet.
    assert [p["name"] for i in found.render()["instances"] for p in i["peers"]] == ["p"]
    assert found.problems() == []


def test_f15_a_thousand_nodes_are_one_status_and_a_short_message() -> None:
    found = cluster(config(), config("later", "uid-l"))
    for number in range(1000):
        found.put(kinds.NODE, node(f"node-{number}"))
    made = plan(found)
    assert len(made.objects) == 1002
    assert made.conditions.keys() == {
        ref("c", "CiliumBGPClusterConfig"),
        ref("later", "CiliumBGPClusterConfig"),
        ref("pc", "CiliumBGPPeerConfig"),
    }
    assert condition(made, "later")["ConflictingClusterConfig"]
    (problem,) = made.problems
    assert problem.message.endswith("n1, n2, node-0, node-1, node-10 and 997 more")


def test_f15_conditions_can_be_switched_off() -> None:
    found = cluster(config(), config("later", "uid-l"))
    assert not any(plan(found, report=False).conditions.values())
