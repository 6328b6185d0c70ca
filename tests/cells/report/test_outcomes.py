"""What becomes of writes of statuses and Events: the log, the metrics and the local API."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from cells.options import ReportOptions
from cells.report import cell
from cells.report.cell import Report, events_resource
from reconcilers.model import ObjectRef
from reconcilers.report.event_writer import EventOutcome
from reconcilers.target.queue import Outcome
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
        report._report_status(Outcome("statuses", KEY, written=True))
        failed = Outcome("statuses", KEY, error=ValueError(), text="403: no")
        report._report_status(failed)
        report._report_status(replace(failed, repeated=True))
        report._report_status(Outcome("statuses", KEY, written=True, recovered=True))
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
        report._report_event(EventOutcome(SERVICE))
        report._report_event(EventOutcome(SERVICE, "503: away"))
        report._report_event(EventOutcome(SERVICE, "403: no", rejected=True))
        report._report_event(EventOutcome(SERVICE, "403: no", rejected=True, repeated=True))
    assert [(line["event_name"], line["object"], line["reason"]) for line in logs] == [
        ("report.event_refused", "Service/shop/web", "403: no")
    ]
    found = metrics(report)
    assert found["waggle_report_writes_total event"] == 1
    assert found["waggle_report_failures_total event"] == 3


def test_events_of_the_local_api_are_those_that_are_recorded() -> None:
    report = Reporting().report

    async def record() -> None:
        report._record(down())

    asyncio.run(record())
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
