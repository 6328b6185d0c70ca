"""What the tests of the chart share: helm, or the reason why it is not there."""

from __future__ import annotations

import pytest

from deploy.generate import CHART
from tests.support import helm as programs
from tests.support.helm import Helm


@pytest.fixture(scope="session")
def helm() -> Helm:
    """The helm that is pinned, with the chart."""
    found = programs.find()
    if isinstance(found, str):
        pytest.skip(found)
    return Helm(found, CHART)
