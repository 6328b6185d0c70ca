"""Metrics of conditions, by the names that another program has for them."""

from __future__ import annotations

from cells.operator.condition_metrics import condition_metrics
from reconcilers.dialect import ConditionMetric
from reconcilers.model import Condition, ObjectRef
from reconcilers.ovnk.dialect import OvnkDialect
from resources.ovnk.kinds import CLUSTER_NETWORK, ROUTE_ADVERTISEMENTS

NAME = "ovnkube_clustermanager_route_advertisement_condition"


def samples(*conditions: Condition) -> dict[tuple[str, str, str], float]:
    """Return the series of RouteAdvertisements by name, condition and status."""
    of_objects: dict[ObjectRef, list[Condition]] = {}
    for condition in conditions:
        of_objects.setdefault(condition.object, []).append(condition)
    (gauge,) = condition_metrics(OvnkDialect.each(ConditionMetric), of_objects)
    assert {sample.name for sample in gauge.samples} <= {NAME}
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


def test_deleted_objects_have_no_series() -> None:
    assert samples() == {}
