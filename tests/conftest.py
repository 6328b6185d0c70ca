"""What all tests share: skipping what this machine cannot run, and saying so in one line.

Fixtures that only some directories need live in their own conftest. Never skips silently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support import netns
from tests.support.netns import Link, linked_namespaces

ROUTER_MARKERS = {"interop", "netns"}


@pytest.fixture(scope="session")
def no_namespaces() -> str | None:
    """Why there can be no network namespaces, or None."""
    return netns.unavailable()


@pytest.fixture
def link(no_namespaces: str | None) -> Iterator[Link]:
    """Two namespaces joined by a cable, for one test."""
    if no_namespaces is not None:
        pytest.skip(no_namespaces)
    with linked_namespaces() as made:
        yield made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line which tests against real routers did not run, and why."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        if ROUTER_MARKERS & set(report.keywords) and isinstance(report.longrepr, tuple):
            reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1
    if reasons:
        parts = [f"{reason} ({count} tests)" for reason, count in sorted(reasons.items())]
        terminalreporter.write_line(f"skipped tests against real routers: {'; '.join(parts)}")
