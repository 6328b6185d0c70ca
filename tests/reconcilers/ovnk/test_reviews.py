"""A review of a change leaves the operator's plan and its metric as they are: both use one dialect."""

from __future__ import annotations

from typing import Any, Final

import pytest

from cells.hive import Group
from cells.operator.compat_metrics import CompatCollector
from reconcilers.admission import Request, Reviewer
from reconcilers.compile_manifests import kinds_of
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.model import Generated
from reconcilers.operator import Planner
from reconcilers.operator.planner import Plan
from reconcilers.ovnk import stored_objects
from reconcilers.ovnk.dialect import OvnkDialect
from reconcilers.ovnk.options import OvnkOptions
from reconcilers.ovnk.other_writer import MANAGER
from reconcilers.ovnk.stored_objects import StoredKey
from reconcilers.sliced_work import finish
from resources.tables import Tables
from statedb import Database
from tests.cells.operator.test_compat_metrics import metrics
from tests.reconcilers.ovnk.operator_cluster import (
    Json,
    advertisements,
    attachment,
    node,
    source,
)
from tests.reconcilers.ovnk.test_scenarios import OF_CLUSTER, SUBNETS, namespace, pod

OBJECTS: Final = (
    node("w1", SUBNETS),
    node("w2", SUBNETS, "10.88.0.12/24"),
    attachment("blue", "10.61.0.0/16/24"),
    namespace("blue-ns"),
    source(),
    advertisements(**OF_CLUSTER),
    pod("blue-ns", "w1"),
)
MOVED: Final = {"default": ["10.180.7.0/24"], "cluster_udn_blue": ["10.61.9.0/24"]}
"""Other subnets of a node."""


class Operator:
    """An operator with a webhook: plans and reviews by the same dialects."""

    def __init__(self, *objects: Json) -> None:
        self.db = Database()
        self.tables = Tables(self.db, kinds_of([OvnkDialect, Frrk8sDialect]))
        ovnk = OvnkDialect(self.tables, OvnkOptions(mode="generate", dynamic_udn=True))
        frrk8s = Frrk8sDialect(self.tables, Frrk8sDialect.operator_options_type())
        self.dialects = [ovnk, frrk8s]
        self.planner = Planner(self.db, self.dialects, "kube-system")
        self.reviewer = Reviewer(self.db, self.tables, self.dialects)
        self.collector = CompatCollector(Group([ovnk]), metrics(compat=True), {})
        self.put(*objects)

    def put(self, *objects: Json) -> None:
        for value in objects:
            kind = self.tables.kinds.named(value["kind"])
            assert kind is not None
            with self.db.write(self.tables.of(kind)) as txn:
                self.tables.of(kind).upsert(txn, kind.decode(value))

    def plan(self) -> Plan:
        plan = finish(self.planner.plan())
        assert plan is not None
        self.collector.states = plan.states
        return plan

    def deny(self) -> None:
        """Review an FRRConfiguration that contradicts the stored one."""
        value = source("other", {"asn": 64999})
        request = Request("CREATE", value["apiVersion"], value["kind"], value)
        assert not self.reviewer.review(request).allowed

    @property
    def nodes_of_networks(self) -> dict[str, float]:
        name = "ovnkube_clustermanager_udn_nodes_rendered"
        found = {metric.name: metric for metric in filter(None, self.collector.collect())}
        return {of.labels["network_name"]: of.value for of in found[name].samples}


def test_a_denied_change_leaves_the_metric_as_the_last_plan_has_it() -> None:
    operator = Operator(*OBJECTS)
    operator.plan()
    assert operator.nodes_of_networks == {"cluster_udn_blue": 1}
    row = advertisements(**OF_CLUSTER)
    row["metadata"]["managedFields"] = [{"manager": MANAGER, "time": "2026-11-23T12:00:00Z"}]
    operator.put(row)
    # The other controller has the networks now: the operator writes nothing, and counts none.
    assert operator.plan().problems
    assert operator.nodes_of_networks == {}
    operator.deny()
    assert operator.nodes_of_networks == {}


def test_the_metric_has_the_pods_of_the_last_plan_and_not_of_a_review() -> None:
    operator = Operator(*OBJECTS)
    operator.plan()
    operator.put(pod("blue-ns", "w2"))
    operator.deny()
    assert operator.nodes_of_networks == {"cluster_udn_blue": 1}


def test_before_the_first_plan_of_a_leader_there_is_no_number_of_nodes() -> None:
    operator = Operator(*OBJECTS)
    operator.deny()
    assert operator.nodes_of_networks == {}


def test_a_plan_after_a_denied_change_has_the_changes_before_it() -> None:
    operator = Operator(*OBJECTS)
    operator.plan()
    operator.put(node("w1", MOVED))
    operator.deny()
    operator.deny()
    plan = operator.plan()
    assert "10.61.9.0/24" in str(plan.objects)
    assert plan.objects == Operator(*OBJECTS, node("w1", MOVED)).plan().objects


def test_a_change_of_a_node_compares_the_objects_of_that_node_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second = pod("blue-ns", "w2")
    second["metadata"]["name"] = "q"
    operator = Operator(*OBJECTS, second)
    before = operator.plan().objects
    compared: list[str] = []

    def counted(name: str, key: StoredKey, *of_object: Any) -> Generated:  # noqa: ANN401
        compared.append(key.annotation)
        return stored_objects.generated(name, key, *of_object)

    monkeypatch.setattr("reconcilers.ovnk.changed_objects.generated", counted)
    assert operator.plan().objects == before
    assert compared == []
    operator.put(node("w1", MOVED))
    after = operator.plan().objects
    assert compared == ["north/spine/w1"]
    assert len(after) == len(before)
    assert [write for write in before if write not in after] == [
        write for write in before if "spine/w1" in str(write)
    ]
