"""Second attempts within the time of a test."""

from __future__ import annotations

import pytest

from tests.cells.faults.permissions.programs import quicken


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quicken(monkeypatch)
