"""The shell's tests run on both event loops: asyncio's, and uvloop, which the programs use."""

from __future__ import annotations

import asyncio

import pytest
import uvloop


@pytest.fixture(params=["asyncio", "uvloop"])
def both_event_loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `asyncio.run` be that of one kind of loop; tests without a loop do not ask for this."""
    if request.param == "uvloop":
        monkeypatch.setattr(asyncio, "run", uvloop.run)
