"""The outcomes of writes of statuses and Events: the log, the metrics and the local API."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from cells.hive import HealthTree
from cells.options import ReportOptions
from cells.report import cell
from cells.report.cell import Report, events_resource
from cells.report.node_objects import NodeObjectReport
from reconcilers.api_server import RequestError
from reconcilers.model import ObjectRef
from reconcilers.report.events import Regarding
from reconcilers.target.queue import LISTING, ReconcileOutcome
from tests.cells.report.test_session_events import Reporting
from tests.reconcilers.report.test_events import down

KEY = ("CiliumBGPNodeConfig", "", "n1")
SERVICE = ObjectRef("Service", "shop", "web")


def metrics(report: Report) -> dict[str, float]:
    return {
        f"{sample.name} {sample.labels.get('what', '')}".strip(): sample.value
        for family in report.collect()
        for sample in family.samples
    }


def test_statuses_are_counted_and_an_error_is_logged_once() -> None:
    report = Reporting().report
    with capture_logs() as logs:
        note = report._statuses.note
        note(ReconcileOutcome("statuses", KEY, written=True))
        failed = ReconcileOutcome("statuses", KEY, error=ValueError(), text="403: no")
        note(failed)
        note(replace(failed, repeated=True))
        note(ReconcileOutcome("statuses", KEY, written=True, recovered=True))
    assert [(line["event_name"], line["log_level"]) for line in logs] == [
        ("report.failed", "warning"),
        ("report.recovered", "info"),
    ]
    assert logs[0]["object"] == "CiliumBGPNodeConfig/n1"
    assert logs[0]["reason"] == "403: no"
    found = metrics(report)
    assert found["waggle_report_writes_total status"] == 2
    assert found["waggle_report_failures_total status"] == 2
    assert found["waggle_report_writes_total event"] == 0
    assert found["waggle_report_failures_total event"] == 0


def test_events_are_counted_and_a_rejection_is_logged_once() -> None:
    report = Reporting().report
    with capture_logs() as logs:
        report._events.record(down(regarding=Regarding(SERVICE, "v1")))
        (key,) = report._events.events.all_events()
        note = report._events.outcomes.note
        note(ReconcileOutcome("event", key, written=True))
        note(ReconcileOutcome("event", LISTING, error=ValueError(), text="503: away"))
        rejected = ReconcileOutcome("event", key, error=ValueError(), text="403: no", given_up=True)
        note(rejected)
        note(replace(rejected, repeated=True))
    assert [(line["event_name"], line["object"], line["reason"]) for line in logs] == [
        ("report.event_refused", "Service/shop/web", "403: no")
    ]
    found = metrics(report)
    assert found["waggle_report_writes_total event"] == 1
    assert found["waggle_report_failures_total event"] == 3


def test_the_local_api_streams_the_recorded_events() -> None:
    report = Reporting().report
    report._events.record(down())
    resource = events_resource(report)
    assert (resource.path, resource.kind) == ("/v1/events", "EventList")
    (item,) = cast("Any", resource.read({}))
    assert item.node == "n1"
    assert item.reason == down().reason


def test_without_events_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tests.cells.report.test_session_events.ReportOptions",
        lambda: ReportOptions(events=False),
    )
    it = Reporting()
    assert list(it.jobs) == ["status"]
    assert list(cast("Any", events_resource(it.report).read({}))) == []
    assert metrics(it.report)["waggle_report_events_dropped_total"] == 0


def test_a_dialect_that_fails_is_logged_with_its_error() -> None:
    error = KeyError("a bug in a dialect")
    with capture_logs() as logs:
        cell._log_failed_dialect("toy", error)
    (line,) = logs
    assert (line["event_name"], line["log_level"]) == ("events.dialect_failed", "error")
    assert (line["dialect"], line["exc_info"]) == ("toy", error)


class Objects:
    """The report of objects of a node, of which only the states are used."""

    def __init__(self, *, enabled: bool = True) -> None:
        self.tree = HealthTree()
        report = self.report = object.__new__(NodeObjectReport)
        report._enabled = enabled
        report._health = self.tree.scope("objects")
        report._writes = Counter()
        report._outcomes = report._new_outcomes()
        kind: Any = SimpleNamespace(missing=False, count=3, name_of=lambda key: key[-1])
        self.kind = kind
        report._objects = {"BGPSessionState": kind}
        described: Any = SimpleNamespace(kind=SimpleNamespace(name="BGPSessionState"))
        report._kinds = [(cast("Any", None), described)]

    def state(self, failure: object = None) -> tuple[str, str]:
        description = SimpleNamespace(name="BGPSessionState")
        state: Any = SimpleNamespace(description=description, failure=failure, errors=1)
        self.report._report_state(state)
        (status,) = self.tree.report()
        assert status.path == ("objects", "BGPSessionState")
        return str(status.level), status.message


def test_the_state_of_a_kind_of_objects_of_the_node() -> None:
    it = Objects()
    assert it.state() == ("ok", "3 of this node")
    failed = it.state((("", "n1-tor"), "403: no"))
    assert failed == ("degraded", "BGPSessionState/n1-tor: 403: no; it is retried")
    it.kind.missing = True
    assert it.state() == (
        "stopped",
        "the API server does not have it (waggle crds BGPSessionState | kubectl create -f -)",
    )
    off = Objects(enabled=False)
    assert off.state() == ("ok", "switched off (--status-report=false); there is none")


def test_an_object_that_is_not_written_is_counted_and_logged_once() -> None:
    it = Objects()
    failed = ReconcileOutcome("BGPSessionState", ("", "n1-tor"), error=ValueError(), text="as text")
    refused = RequestError("status", "refused", 1.0)
    with capture_logs() as logs:
        it.report._outcomes.note(ReconcileOutcome("BGPSessionState", ("", "n1-tor"), written=True))
        it.report._outcomes.note(failed)
        it.report._outcomes.note(replace(failed, repeated=True))
        it.report._outcomes.note(replace(failed, key=("", ""), error=refused))
    assert [(line["event_name"], line["object"], line["reason"]) for line in logs] == [
        ("report.object_failed", "BGPSessionState/n1-tor", "as text"),
        ("report.object_failed", "BGPSessionState", "refused"),
    ]
    it.report._writes["BGPSessionState"] = 2
    found = {
        sample.name: (sample.labels, sample.value)
        for family in it.report.collect()
        for sample in family.samples
    }
    of_kind = {"kind": "BGPSessionState"}
    assert found == {
        "waggle_report_object_writes_total": (of_kind, 2),
        "waggle_report_object_failures_total": (of_kind, 3),
    }
    it.report._kinds = []
    assert it.report.collect() == []
