"""Writes docs/interop.md at the end of a test run in which every cell of the matrix has passed.

A pytest plugin. Tests name their cell by the property ``cell``, so that it works with several processes
(pytest-xdist), too. A run of some cells, or one with a failure, writes nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop import matrix

PAGE = Path(__file__).parents[2] / "docs" / "interop.md"


class InteropPage:
    """Records the cells that have passed, with the versions of routers."""

    def __init__(self, page: Path = PAGE) -> None:
        self._page = page
        self._passed: set[tuple[str, str]] = set()
        self._failed = False
        self._versions: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the result of a cell."""
        found = dict(report.user_properties).get("cell")
        if not isinstance(found, list | tuple):
            return
        feature, kind, version = (str(part) for part in found)
        if report.failed:
            self._failed = True
        elif report.when == "call" and report.passed:
            self._passed.add((feature, kind))
            self._versions[kind] = version

    def pytest_sessionfinish(self) -> None:
        """Write the page if it differs."""
        if self._failed or self._passed != set(matrix.CELLS):
            return
        text = matrix.render(self._versions)
        if not self._page.exists() or self._page.read_text() != text:
            self._page.write_text(text)
