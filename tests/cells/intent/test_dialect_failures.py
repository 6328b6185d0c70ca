"""Dialects that fail: the health names each, and a failure is logged once."""

from __future__ import annotations

import structlog
from structlog.testing import capture_logs

from cells.hive import HealthTree
from cells.intent.dialect_failures import DialectFailures


def test_a_repeated_failure_is_logged_once_and_a_different_failure_again() -> None:
    tree = HealthTree()
    log = structlog.get_logger("waggle.test")
    failures = DialectFailures(tree.scope("x"), log, "the dialect fails", "x.dialect_failed")

    def report(**errors: Exception) -> list[tuple[str, str]]:
        with capture_logs() as logs:
            failures.report(errors, "not compiled", "compiled")
        for line in logs:
            assert line["event"] == "the dialect fails"
            assert line["event_name"] == "x.dialect_failed"
            assert line["log_level"] == "error"
            assert line["exc_info"] is errors[line["dialect"]]
        return [(line["dialect"], str(line["exc_info"])) for line in logs]

    def health() -> tuple[str, str]:
        (status,) = tree.report()
        return str(status.level), status.message

    assert report(a=ValueError("no"), b=KeyError("k")) == [("a", "no"), ("b", "'k'")]
    assert health() == ("degraded", "not compiled: a: ValueError: no; b: KeyError: 'k'")
    assert report(a=ValueError("no"), b=KeyError("l")) == [("b", "'l'")]
    assert report(a=ValueError("no")) == []
    assert health() == ("degraded", "not compiled: a: ValueError: no")
    assert report() == []
    assert health() == ("ok", "compiled")
    assert report(a=ValueError("no")) == [("a", "no")], "it was repaired meanwhile"
