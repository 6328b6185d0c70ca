"""Sources that try again within the time of a test; the order of things stays as it is."""

from __future__ import annotations

import pytest

from cells import kubernetes
from resources.kubernetes import Timing

QUICK = Timing(connect=1.0, first=0.02, longest=0.1, confirm=0.02, missing=0.05, grace=0.1)


def hurry(monkeypatch: pytest.MonkeyPatch, timing: Timing = QUICK) -> None:
    """Give these times to all sources that a kubernetes cell makes from here on."""
    monkeypatch.setattr(kubernetes, "TIMING", timing)
