"""What the demo reads of its two programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from waggle.commands.demo import program
from waggle.commands.demo.examples import Examples
from waggle.commands.demo.program import Demo


class ComingUp:
    """A router whose session comes up, with all routes, once it has been asked for something."""

    def __init__(self) -> None:
        self._asked = 0

    def get(self, path: str, _query: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
        """Return the list of a path."""
        self._asked += 1
        is_up = self._asked > 1
        if path == "/v1/peers":
            return {"items": [_peer("Established" if is_up else "OpenConfirm")]}
        return {"items": [{"prefix": "203.0.113.1/32", "nextHop": "127.0.0.1"}] if is_up else []}


def _peer(state: str) -> dict[str, Any]:
    return {"address": "127.0.0.1", "state": state}


def test_routes_are_never_read_beside_a_session_that_was_not_up_yet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    router = ComingUp()
    monkeypatch.setattr(program, "at_socket", lambda *_: router)
    monkeypatch.setattr(Demo, "render", lambda _: None)
    examples = Examples(tmp_path / "manifests", tmp_path / "router.yaml")
    demo = Demo(examples, "n1", tmp_path / "agent.sock", tmp_path)
    coming, there = demo.read(), demo.read()
    assert (coming.routes, coming.sessions[0].state) == ((), "Established")
    assert (len(there.routes), there.sessions[0].state) == (1, "Established")
