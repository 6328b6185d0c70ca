"""What the operator writes of v1's policies: made, changed, left alone, and taken away."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.cilium.options import CiliumOperatorOptions
from reconcilers.model import ObjectRef
from reconcilers.operator import Apply, Delete, Plan, Planner
from reconcilers.sliced_work import finish
from tests.reconcilers.build import Cluster, node, peer_config
from tests.reconcilers.cilium.v1.build import neighbor, policy_object, router
from tests.support import kinds

POLICY = ObjectRef("CiliumBGPPeeringPolicy", "", "p")
KINDS = ("CiliumBGPPeerConfig", "CiliumBGPAdvertisement", "CiliumBGPClusterConfig")


def _cluster(*routers: dict[str, Any], uid: str = "uid-p") -> Cluster:
    cluster = Cluster()
    cluster.put(kinds.NODE, node("n1"))
    _put_policy(cluster, *(routers or (router(65001, exportPodCIDR=True),)), uid=uid)
    return cluster


def _put_policy(cluster: Cluster, *routers: dict[str, Any], uid: str = "uid-p") -> None:
    value = policy_object("p", *routers, created="2024-01-01T00:00:00Z")
    value["metadata"]["uid"] = uid
    cluster.put(kinds.PEERING_POLICY, value)


def _round(cluster: Cluster) -> Planner:
    options = CiliumOperatorOptions(translate_peering_policies=True)
    return Planner(cluster.db, [CiliumDialect(cluster.resources, options)], "kube-system")


def _plan(cluster: Cluster) -> Plan:
    made = finish(_round(cluster).plan())
    assert made is not None
    return made


def _write(cluster: Cluster) -> list[tuple[type, str, str]]:
    """Let the API server have what is planned; what that was."""
    done = []
    for one in _plan(cluster).objects:
        kind = kinds.KINDS.find("cilium.io/v2", one.object.kind)
        assert kind is not None
        if isinstance(one, Delete):
            assert one.uid == f"uid-{one.object.name}"
            cluster.delete(kind, one.object.name)
        else:
            metadata = {**one.content["metadata"], "uid": f"uid-{one.object.name}"}
            cluster.put(kind, {**one.content, "metadata": metadata})
        done.append((type(one), one.object.kind, one.object.name))
    return done


def test_translated_objects_precede_their_node_configs() -> None:
    cluster = _cluster()
    assert [(what, kind) for what, kind, _ in _write(cluster)] == [(Apply, k) for k in KINDS]
    assert _write(cluster) == [(Apply, "CiliumBGPNodeConfig", "n1")]
    assert _plan(cluster).objects == ()
    (config,) = cluster.resources.of(kinds.NODE_CONFIG).all(cluster.db.snapshot())
    assert config.metadata.owner_references[0].uid == "uid-bgpp-p"


def test_translated_objects_have_the_policy_as_controller() -> None:
    for one in _plan(_cluster()).objects:
        assert isinstance(one, Apply)
        assert one.content["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "cilium.io/v2alpha1",
                "kind": "CiliumBGPPeeringPolicy",
                "name": "p",
                "uid": "uid-p",
                "controller": True,
            }
        ]
        assert "creationTimestamp" not in one.content["metadata"]


def test_only_what_a_change_concerns_is_written() -> None:
    cluster = _cluster()
    while _write(cluster):
        pass
    _put_policy(cluster, router(65001, neighbor(holdTimeSeconds=33), exportPodCIDR=True))
    assert _write(cluster) == [(Apply, "CiliumBGPPeerConfig", "bgpp-p-65001-192.0.2.9")]
    _put_policy(cluster, router(65001, neighbor(holdTimeSeconds=33)))
    assert _write(cluster) == [
        (Apply, "CiliumBGPPeerConfig", "bgpp-p-65001-192.0.2.9"),
        (Delete, "CiliumBGPAdvertisement", "bgpp-p-65001"),
    ]
    assert _plan(cluster).objects == ()


def test_labels_of_other_managers_are_kept() -> None:
    cluster = _cluster()
    while _write(cluster):
        pass
    table = cluster.resources.of(kinds.ADVERTISEMENT)
    (row,) = table.all(cluster.db.snapshot())
    labels = {**row.metadata.labels, "team": "x"}
    with cluster.db.write(table) as txn:
        table.upsert(txn, replace(row, metadata=replace(row.metadata, labels=labels)))
    assert _plan(cluster).objects == ()
    with cluster.db.write(table) as txn:
        table.upsert(txn, replace(row, metadata=replace(row.metadata, labels={"team": "x"})))
    assert [one.object.name for one in _plan(cluster).objects] == ["bgpp-p-65001"]


def test_a_users_object_is_left_unchanged_with_a_problem() -> None:
    cluster = _cluster()
    cluster.put(kinds.PEER_CONFIG, peer_config("bgpp-p-65001-192.0.2.9"))
    assert "CiliumBGPPeerConfig" not in {kind for _, kind, _ in _write(cluster)}
    (problem,) = _plan(cluster).problems
    assert problem.objects == (ObjectRef(KINDS[0], "", "bgpp-p-65001-192.0.2.9"), POLICY)


def test_objects_of_a_deleted_policy_are_left_to_garbage_collection() -> None:
    cluster = _cluster()
    while _write(cluster):
        pass
    cluster.delete(kinds.PEERING_POLICY, "p")
    assert _plan(cluster).objects == ()
    # A new policy of the same name is another owner.
    _put_policy(cluster, router(65002), uid="uid-q")
    assert not any(isinstance(one, Delete) for one in _plan(cluster).objects)


def test_without_the_option_the_operator_translates_no_policy() -> None:
    cluster = _cluster()
    planner = Planner(cluster.db, [cluster.dialect], "kube-system")
    made = finish(planner.plan())
    assert made is not None
    assert made.objects == ()
    assert cluster.resources.of(kinds.PEERING_POLICY) not in planner.followed
    assert cluster.resources.of(kinds.PEERING_POLICY) in _round(cluster).followed
