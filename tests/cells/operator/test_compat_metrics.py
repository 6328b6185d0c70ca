"""Metrics of conditions, by the names that another program has for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from cells.hive import Group, Health, Late
from cells.observability.metrics import Metrics
from cells.operator.compat_metrics import CompatCollector
from cells.options import MetricsOptions
from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.compile_manifests import kinds_of
from reconcilers.dialect import Dialect
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.model import Condition, ObjectRef
from reconcilers.operator import Planner
from reconcilers.ovnk.dialect import OvnkDialect
from reconcilers.ovnk.options import OvnkOptions
from reconcilers.sliced_work import finish
from resources.ovnk.kinds import CLUSTER_NETWORK, ROUTE_ADVERTISEMENTS, VTEP
from resources.tables import Tables
from statedb import Database
from tests.reconcilers.ovnk.operator_cluster import advertisements

if TYPE_CHECKING:
    from cells.hive.jobs import Jobs


def dialect() -> OvnkDialect:
    kinds = kinds_of([OvnkDialect, Frrk8sDialect])
    return OvnkDialect(Tables(Database(), kinds), OvnkOptions(mode="generate"))


def metrics(*, compat: bool) -> Metrics:
    jobs = cast("Jobs", SimpleNamespace(add=lambda *_: None))
    return Metrics(jobs, Health(), MetricsOptions(compat=compat), Late(lambda: Group()))


def samples(
    *conditions: Condition, kind: str = "route_advertisement"
) -> dict[tuple[str, str, str], float]:
    """Return the series of the conditions of a kind by name, condition and status."""
    collector = CompatCollector(Group([dialect()]), metrics(compat=True), {})
    for condition in conditions:
        before = collector.conditions.get(condition.object, ())
        collector.conditions = {**collector.conditions, condition.object: (*before, condition)}
    return _series(collector, kind)


def _series(collector: CompatCollector, kind: str) -> dict[tuple[str, str, str], float]:
    gauges = {gauge.name: gauge for gauge in collector.collect() if gauge is not None}
    gauge = gauges[f"ovnkube_clustermanager_{kind}_condition"]
    return {
        (labels["name"], labels["condition"], labels["status"]): value
        for _, labels, value, *_ in gauge.samples
    }


def of(name: str, type_: str, *, status: bool, kind: str = ROUTE_ADVERTISEMENTS.name) -> Condition:
    return Condition(ObjectRef(kind, "", name), type_, status, "Any")


def test_route_advertisements_have_both_statuses_of_accepted_and_the_present_one_is_1() -> None:
    assert samples(
        of("north", "Accepted", status=True),
        of("north", "Another", status=True),
        of("south", "Accepted", status=False),
        of("blue", "TransportAccepted", status=True, kind=CLUSTER_NETWORK.name),
    ) == {
        ("north", "Accepted", "true"): 1,
        ("north", "Accepted", "false"): 0,
        ("south", "Accepted", "true"): 0,
        ("south", "Accepted", "false"): 1,
    }


def test_networks_and_vteps_have_a_metric_each() -> None:
    conditions = (
        of("blue", "TransportAccepted", status=True, kind=CLUSTER_NETWORK.name),
        of("fabric", "Accepted", status=False, kind=VTEP.name),
    )
    assert samples(*conditions, kind="cluster_user_defined_network") == {
        ("blue", "TransportAccepted", "true"): 1,
        ("blue", "TransportAccepted", "false"): 0,
    }
    assert samples(*conditions, kind="vtep") == {
        ("fabric", "Accepted", "true"): 0,
        ("fabric", "Accepted", "false"): 1,
    }


def test_a_deleted_object_has_no_series_any_more() -> None:
    kinds = kinds_of([OvnkDialect, Frrk8sDialect])
    db = Database()
    tables = Tables(db, kinds)
    ovnk = OvnkDialect(tables, OvnkOptions(mode="generate"))
    planner = Planner(
        db, [ovnk, Frrk8sDialect(tables, Frrk8sDialect.options_type())], "kube-system"
    )
    collector = CompatCollector(Group([ovnk]), metrics(compat=True), {})

    def series() -> set[str]:
        """Return the names of objects with series after a round of the operator."""
        plan = finish(planner.plan())
        assert plan is not None
        collector.conditions = plan.conditions
        return {name for name, _, _ in _series(collector, "route_advertisement")}

    table = tables.of(ROUTE_ADVERTISEMENTS)
    rows = {name: ROUTE_ADVERTISEMENTS.decode(advertisements(name)) for name in ("north", "south")}
    with db.write(table) as txn:
        for row in rows.values():
            table.upsert(txn, row)
    assert series() == {"north", "south"}
    with db.write(table) as txn:
        table.delete(txn, rows["north"].key)
    assert series() == {"south"}
    with db.write(table) as txn:
        table.delete(txn, rows["south"].key)
    assert series() == set()


def test_without_the_option_there_is_none() -> None:
    assert list(CompatCollector(Group([dialect()]), metrics(compat=False), {}).collect()) == []


def test_failed_writes_of_cilium_s_objects_are_counted_by_kind_and_name() -> None:
    failures = {
        ObjectRef("CiliumBGPNodeConfig", "", "n1"): 2,
        ObjectRef("FRRConfiguration", "ns", "x"): 1,
    }
    collector = CompatCollector(
        Group([cast("Dialect", CiliumDialect)]), metrics(compat=True), failures
    )
    found = {metric.name: metric for metric in filter(None, collector.collect())}
    errors = found["cilium_operator_bgp_control_plane_reconcile_errors_total"]
    assert [(one.labels, one.value) for one in errors.samples] == [
        ({"resource_kind": "CiliumBGPNodeConfig", "resource_name": "n1"}, 2)
    ]
    assert (
        found["cilium_operator_bgp_control_plane_reconcile_run_duration_seconds"].type
        == "histogram"
    )
