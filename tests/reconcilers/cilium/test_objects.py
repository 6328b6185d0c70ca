"""The objects of v2 beside translated policies: which of them are in effect."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from reconcilers.cilium.objects import (
    Objects,
    TranslatedObjects,
    objects_of,
    policy_translated_from,
    with_translated,
)
from reconcilers.cilium.v1.translation import ClusterView, as_object
from reconcilers.model import ObjectRef
from resources.cilium import CiliumBGPPeeringPolicy
from resources.kind import Kind
from tests.reconcilers.build import Cluster, cluster_config
from tests.reconcilers.cilium.v1.build import node, policy, policy_object, router
from tests.support import kinds
from tests.support.kinds import KINDS

NAME, ADVERT = "bgpp-p", "bgpp-p-65001"
NODE = node("n", {"cilium.io/bgp-virtual-router.65001": "local-port=179"})
EXPORTING = router(65001, exportPodCIDR=True)
OVERRIDE = kinds.NODE_CONFIG_OVERRIDE


def _with(cluster: Cluster, *policies: CiliumBGPPeeringPolicy) -> tuple[Objects, TranslatedObjects]:
    objects = objects_of(cluster.resources, cluster.db.snapshot())
    return with_translated(
        objects, {p.metadata.name: p for p in policies}, ClusterView((NODE,), ())
    )


def _policy(*routers: dict[str, Any]) -> CiliumBGPPeeringPolicy:
    made = policy("p", *(routers or (EXPORTING,)))
    return replace(made, metadata=replace(made.metadata, uid="u-1"))


def _override(instance: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    spec = {"bgpInstances": [{"name": instance, **fields}]}
    return {"metadata": {"name": "n"}, "spec": spec}


def _put_all(cluster: Cluster, made: TranslatedObjects) -> None:
    """Write what was made, as an operator does."""
    for row in made.rows.values():
        item = as_object(row)
        kind: Kind[Any] | None = KINDS.find(item["apiVersion"], item["kind"])
        assert kind is not None
        cluster.put(kind, item)


def test_a_translated_object_has_its_policy_as_controller() -> None:
    objects, made = _with(Cluster(), _policy())
    assert list(objects.cluster_configs) == [NAME]
    assert list(objects.advertisements) == [ADVERT]
    assert list(objects.overrides) == ["n"]
    for row in made.rows.values():
        owner = policy_translated_from(row)
        assert owner is not None
        assert (owner.name, owner.uid, owner.controller) == ("p", "u-1", True)
    assert set(made.origins.values()) == {ObjectRef("CiliumBGPPeeringPolicy", "", "p")}


def test_a_users_object_precedes_a_translated_one() -> None:
    cluster = Cluster()
    cluster.put(kinds.CLUSTER_CONFIG, cluster_config(NAME))
    objects, _ = _with(cluster, _policy())
    assert objects.cluster_configs[NAME].spec.bgp_instances[0].name == "i"


def test_translated_instances_are_added_to_a_users_override() -> None:
    cluster = Cluster()
    cluster.put(OVERRIDE, _override("65002", routerID="9.9.9.9"))
    objects, _ = _with(cluster, _policy())
    found = {i.name: (i.router_id, i.local_port) for i in objects.overrides["n"].spec.bgp_instances}
    assert found == {"65002": ("9.9.9.9", None), "65001": (None, 179)}
    cluster.put(OVERRIDE, _override("65001", routerID="9.9.9.9"))
    objects, _ = _with(cluster, _policy())
    (instance,) = objects.overrides["n"].spec.bgp_instances
    assert (instance.router_id, instance.local_port) == ("9.9.9.9", None)


def test_a_stored_translation_is_replaced_by_the_present_one() -> None:
    cluster = Cluster()
    _, before = _with(cluster, _policy())
    _put_all(cluster, before)
    objects, made = _with(cluster, _policy())
    assert made.rows == before.rows
    changed, _ = _with(cluster, _policy(router(65001)))
    assert changed.advertisements == {}
    assert changed.cluster_configs.keys() == objects.cluster_configs.keys()
    gone, made = _with(cluster)
    assert (gone.cluster_configs, gone.overrides, made.rows) == ({}, {}, {})


def test_a_node_config_of_another_controller_is_not_owned() -> None:
    value = policy_object("p")
    owner = {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": "CiliumBGPPeeringPolicy",
        "name": "p",
        "uid": "u",
    }
    for change in (
        {},
        {"controller": True, "kind": "Other"},
        {"controller": True, "apiVersion": "x/v1"},
    ):
        value["metadata"]["ownerReferences"] = [{**owner, **change}]
        assert policy_translated_from(kinds.PEERING_POLICY.decode(value)) is None
