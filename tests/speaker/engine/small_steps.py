"""Steps so small that a table of a hundred prefixes has many."""

from __future__ import annotations

import pytest

from speaker.engine import sliced_work
from speaker.rib import initial_table, prefix_groups, update_group


def set_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the limits of what is sent in steps."""
    monkeypatch.setattr(sliced_work, "SLICE_UNITS", 10)
    monkeypatch.setattr(update_group, "LARGE_TABLE", 20)
    monkeypatch.setattr(update_group, "LARGE_DIFFERENCE", 20)
    monkeypatch.setattr(prefix_groups, "STEP_PREFIXES", 7)
    monkeypatch.setattr(prefix_groups, "PIECE_UNITS", 20)
    for module in (prefix_groups, initial_table):
        monkeypatch.setattr(module, "STEP_UNITS", 10)
    monkeypatch.setattr(initial_table, "LAST_PREFIXES", 3)
