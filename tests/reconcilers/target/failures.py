"""The failures that a runner has at present."""

from __future__ import annotations

from reconcilers.target import Runner


def failures(runner: Runner) -> int:
    """Return the number of objects and listings that fail."""
    assert runner.has_failures == any(report.errors for report in runner.reports())
    return sum(report.errors for report in runner.reports())
