"""What all tests share: skipping what this machine cannot run, and saying so in one line.

Fixtures that only some directories need live in their own conftest. Never skips silently.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import netns
from tests.support.netns import Link, linked_namespaces

_why_not = pytest.StashKey[dict[str, int]]()


def skip(config: pytest.Config, reason: str) -> None:
    """Skip the running test, and have the reason counted in the summary line."""
    reasons = config.stash.setdefault(_why_not, {})
    reasons[reason] = reasons.get(reason, 0) + 1
    pytest.skip(reason)


@pytest.fixture(scope="session")
def no_namespaces() -> str | None:
    """Why there can be no network namespaces, or None."""
    return netns.unavailable()


@pytest.fixture
def link(request: pytest.FixtureRequest, no_namespaces: str | None) -> Iterator[Link]:
    """Two namespaces joined by a cable, for one test."""
    if no_namespaces is not None:
        skip(request.config, no_namespaces)
    with linked_namespaces() as made:
        yield made


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say in one line which tests against real routers did not run, and why."""
    reasons = config.stash.get(_why_not, {})
    if reasons:
        parts = [f"{reason} ({count} tests)" for reason, count in sorted(reasons.items())]
        terminalreporter.write_line(f"skipped tests against real routers: {'; '.join(parts)}")
