"""Sources that try again within the time of a test; the order of things stays as it is."""

from __future__ import annotations

import pytest

from cells.sources import api_server
from resources.kubernetes import Timeouts

QUICK = Timeouts(
    connect=60.0,  # a server that is away refuses at once
    first_retry=0.02,
    longest_retry=0.1,
    confirm_list=0.02,
    missing_kind=0.05,
    longest_missing=0.1,
    forbidden_grace=0.1,
)


def hurry(monkeypatch: pytest.MonkeyPatch, timeouts: Timeouts = QUICK) -> None:
    """Give these times to all sources that a kubernetes cell makes from here on."""
    monkeypatch.setattr(api_server, "TIMEOUTS", timeouts)
