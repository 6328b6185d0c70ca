"""The lines about problems: what is new and what is solved, and nothing about what goes on."""

from __future__ import annotations

import structlog
from structlog.testing import capture_logs

from cells.intent.problem_log import ProblemLog
from reconcilers.model import ObjectRef, Problem

WEB, SHOP, TEAM = (ObjectRef("Service", "shop", name) for name in ("web", "shop", "team"))
LOG = ProblemLog(structlog.get_logger("waggle.intent"), "intent.problem", "intent.solved")


def test_solved_problems_come_first_and_each_has_its_values() -> None:
    solved = Problem((WEB,), "spec.asn", "is missing")
    plain = Problem((SHOP,), "", "is not there")
    many = Problem((TEAM,), "status", "is refused", count=3, of_tenant=True)
    with capture_logs() as lines:
        LOG.write([solved], [plain, many])
    assert lines == [
        {
            "event": "problem solved",
            "event_name": "intent.solved",
            "log_level": "info",
            "object": "Service/shop/web",
            "field": "spec.asn",
        },
        {
            "event": "problem",
            "event_name": "intent.problem",
            "log_level": "warning",
            "object": "Service/shop/shop",
            "field": None,
            "reason": "is not there",
            "count": None,
            "of_tenant": None,
        },
        {
            "event": "problem",
            "event_name": "intent.problem",
            "log_level": "warning",
            "object": "Service/shop/team",
            "field": "status",
            "reason": "is refused",
            "count": 3,
            "of_tenant": True,
        },
    ]


def test_a_conflict_that_an_object_joins_is_neither_solved_nor_new() -> None:
    two = Problem((WEB, SHOP), "spec.asn", "two objects differ")
    three = Problem((WEB, SHOP, TEAM), "spec.asn", "three objects differ")
    with capture_logs() as lines:
        LOG.write([two], [three])
    assert lines == []
