"""Compilation is a function of its arguments: what one looked at changes no other's result."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from reconcilers.dialect import ClusterContext, NodeContext, operate
from reconcilers.sliced_work import finish
from resources.cilium.kinds import CLUSTER_CONFIG
from resources.core.kinds import NODE
from tests.reconcilers.build import Cluster, node


def cluster_config(name: str, asn: int) -> dict[str, Any]:
    instance = {"name": f"instance-{asn}", "localASN": asn}
    return {"metadata": {"name": name}, "spec": {"bgpInstances": [instance]}}


def test_a_snapshot_that_never_becomes_present_moves_no_node() -> None:
    """An admission review compiles the objects of a change that it denies."""
    it = Cluster(operator=False)
    it.put(NODE, node())
    it.put(CLUSTER_CONFIG, cluster_config("b", 65002))
    context = NodeContext("test-node")
    first = finish(it.dialect.compile(it.db.snapshot(), context))
    it.put(CLUSTER_CONFIG, cluster_config("a", 65001))
    both = it.db.snapshot()
    it.delete(CLUSTER_CONFIG, "b", "")
    finish(it.dialect.compile(it.db.snapshot(), context))
    kept = finish(it.dialect.compile(both, replace(context, state=first.state)))
    assert [row.local_asn for row in kept.instances] == [65002]
    assert finish(it.dialect.compile(both, replace(context, state=first.state))) == kept


def test_a_plan_that_is_not_carried_out_moves_no_node() -> None:
    it = Cluster(operator=False)
    it.put(NODE, node())
    it.put(CLUSTER_CONFIG, cluster_config("b", 65002))
    context = ClusterContext(stored=False)
    first = finish(operate(it.dialect, it.db.snapshot(), context))
    it.put(CLUSTER_CONFIG, cluster_config("a", 65001))
    both = it.db.snapshot()
    it.delete(CLUSTER_CONFIG, "b", "")
    finish(operate(it.dialect, it.db.snapshot(), context))
    kept = finish(operate(it.dialect, both, replace(context, state=first.state)))
    (generated,) = kept.generated
    assert [one["localASN"] for one in generated.content["spec"]["bgpInstances"]] == [65002]
