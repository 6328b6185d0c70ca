"""What an operator reports of its writes, conflicts and migrations: log, health and metrics."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from cells.hive import HealthTree
from cells.operator import cell
from cells.operator.cell import Operator, make_leadership, process_attributes
from cells.options import OperatorOptions
from reconcilers.api_server import RequestError
from reconcilers.model import ObjectRef, Problem
from reconcilers.target.queue import ReconcileOutcome

REF = ObjectRef("CiliumBGPNodeConfig", "", "n1")
KEY = ("CiliumBGPNodeConfig", "", "n1")


class Reporting:
    """An operator of which only the reports are used."""

    def __init__(self) -> None:
        self.tree = HealthTree()
        self.errors = 0
        operator = self.operator = object.__new__(Operator)
        operator._health = self.tree.scope("operator")
        operator._known = frozenset()
        operator._outcomes = operator._new_outcomes(cast("Any", self))
        operator._objects = None
        compat: Any = SimpleNamespace(collect=lambda: iter(("of dialects",)))
        operator._compat = compat
        leadership: Any = SimpleNamespace(gained=asyncio.Event())
        operator._leadership = leadership

    def inc(self) -> None:
        self.errors += 1

    @property
    def health(self) -> dict[str, tuple[str, str]]:
        return {
            "/".join(s.path): (str(s.level), s.message) for s in self.tree.report() if s.message
        }


def problem(name: str, field: str = "spec.asn") -> Problem:
    return Problem((ObjectRef("Router", "ns", name), ObjectRef("Router", "ns", "z")), field, "no")


def test_a_problem_is_a_line_when_it_comes_and_when_it_is_solved() -> None:
    it = Reporting()

    def report(*problems: Problem) -> list[dict[str, Any]]:
        with capture_logs() as logs:
            it.operator._report(cast("Any", SimpleNamespace(problems=problems)))
        return [dict(line) for line in logs]

    assert report() == []
    assert it.health["operator/problems"] == ("ok", "nothing is in conflict")
    both = report(problem("b", ""), problem("a"))
    assert both == [
        {
            "event": "problem",
            "event_name": "operator.problem",
            "log_level": "warning",
            "object": f"Router/ns/{name}, Router/ns/z",
            "field": field,
            "reason": "no",
            "count": None,
            "of_tenant": None,
        }
        for name, field in (("a", "spec.asn"), ("b", None))
    ]
    level, text = it.health["operator/problems"]
    assert level == "degraded"
    assert text.startswith("Router/ns/a, Router/ns/z: spec.asn: no")
    (solved,) = report(problem("b", ""))
    assert solved == {
        "event": "problem solved",
        "event_name": "operator.solved",
        "log_level": "info",
        "object": "Router/ns/a, Router/ns/z",
        "field": "spec.asn",
    }
    assert it.health["operator/problems"][1] == "Router/ns/b, Router/ns/z: no"


@pytest.mark.parametrize(("reconciler", "what"), [("objects", "created"), ("conditions", "status")])
def test_each_write_and_each_failure_is_a_line(reconciler: str, what: str) -> None:
    it = Reporting()
    objects: Any = SimpleNamespace(
        description=SimpleNamespace(name="objects"), verb=lambda key: {KEY: "created"}[key]
    )

    it.operator._objects = objects

    def report(outcome: ReconcileOutcome) -> list[dict[str, Any]]:
        with capture_logs() as logs:
            it.operator._outcomes.note(outcome)
        return [dict(line) for line in logs]

    assert report(ReconcileOutcome(reconciler, KEY)) == []
    assert report(ReconcileOutcome(reconciler, KEY, written=True)) == [
        {
            "event": "written",
            "event_name": "operator.written",
            "log_level": "info",
            "object": str(REF),
            "what": what,
        }
    ]
    common = {
        "event": "not written",
        "event_name": "operator.write_failed",
        "log_level": "warning",
        "object": str(REF),
        "what": what,
        "attempt": 3,
        "retry_in": 1.3,
    }
    failed = ReconcileOutcome(
        reconciler, KEY, error=ValueError("v"), text="as text", attempts=3, retry_in=1.26
    )
    assert report(failed) == [{**common, "reason": "as text"}]
    refused = RequestError("node config", "another version", 1.0)
    (line,) = report(
        ReconcileOutcome(reconciler, KEY, error=refused, text="t", attempts=3, retry_in=1.26)
    )
    assert line == {**common, "reason": "another version"}
    repeated = ReconcileOutcome(
        reconciler, KEY, error=refused, attempts=3, retry_in=1.26, repeated=True
    )
    assert len(report(repeated)) == 1
    assert it.errors == 3
    assert it.operator._outcomes.failures == {REF: 3}
    assert it.operator._outcomes.writes == 1


def test_the_metrics_are_whether_it_leads_and_its_writes() -> None:
    it = Reporting()
    it.operator._outcomes.writes = 5

    def samples() -> list[tuple[str, float]]:
        *families, of_dialects = cast("Any", it.operator.collect())
        assert of_dialects == "of dialects"
        return [(s.name, s.value) for family in families for s in family.samples]

    assert samples() == [("waggle_operator_leader", 0), ("waggle_operator_writes_total", 5)]
    it.operator._leadership.gained.set()
    assert samples()[0] == ("waggle_operator_leader", 1)


def test_migrations_are_logged_and_their_errors_are_the_health() -> None:
    it = Reporting()
    migrated = SimpleNamespace(kind="BGPPeer", objects=7, dropped=("v1beta1", "v1alpha1"))

    def report(*errors: object) -> list[dict[str, Any]]:
        result: Any = SimpleNamespace(migrated=[migrated], errors=errors)
        with capture_logs() as logs:
            it.operator._report_migrations(result)
        return [dict(line) for line in logs]

    assert report() == [
        {
            "event": "stored in the present version",
            "event_name": "operator.migrated",
            "log_level": "info",
            "kind": "BGPPeer",
            "objects": 7,
            "dropped": "v1beta1, v1alpha1",
        }
    ]
    scope = "operator/storage-versions"
    assert it.health[scope] == ("ok", "every kind is stored in its present version")
    report("BGPPeer: 403", "Community: 403")
    assert it.health[scope][0] == "degraded"
    assert it.health[scope][1].startswith("objects of old versions stay as they are: BGPPeer: 403")


def test_kinds_without_conditions_are_named() -> None:
    it = Reporting()
    it.operator._report_dropped([])
    assert it.health["operator/conditions"] == ("ok", "stored with their objects")
    it.operator._report_dropped(["BGPPeer", "Community"])
    level, text = it.health["operator/conditions"]
    assert level == "stopped"
    assert text.startswith("the definitions of BGPPeer, Community in the API server have no")


def test_an_adopted_object_is_a_line() -> None:
    with capture_logs() as logs:
        cell._log_adopted(REF)
    assert [(line["event_name"], line["object"]) for line in logs] == [
        ("operator.taken_over", str(REF))
    ]


def test_the_identity_is_that_of_the_options_or_one_of_this_process() -> None:
    def identity(options: OperatorOptions) -> str:
        owner: Any = None
        health = HealthTree().scope("operator")
        return make_leadership(options, owner, health, owner)._election.identity

    assert identity(OperatorOptions(identity="pod-1")) == "pod-1"
    host, _, unique = identity(OperatorOptions()).rpartition("_")
    assert host == socket.gethostname()
    assert unique
    assert identity(OperatorOptions()) != f"{host}_{unique}"


def test_spans_are_of_the_operator_in_its_namespace() -> None:
    options = OperatorOptions(identity="pod-1", lease_namespace="bgp")
    assert dict(process_attributes(options)) == {
        "service.name": "waggle-operator",
        "service.instance.id": "pod-1",
        "k8s.namespace.name": "bgp",
    }
    assert process_attributes(OperatorOptions())["service.instance.id"] == ""
