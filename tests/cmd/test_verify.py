"""``waggle verify`` and ``waggle reconcilers`` where there is nothing to print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from waggle import output
from waggle.__main__ import main
from waggle.commands import verify


@pytest.mark.parametrize(
    ("command", "kind"), [("verify", "DriftList"), ("reconcilers", "ReconcilerList")]
)
def test_without_an_agent_the_error_has_the_requested_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, kind: str
) -> None:
    socket = ["--socket", str(tmp_path / "none")]
    assert main([command, *socket]) == 1
    assert "no agent runs here" in capsys.readouterr().err
    assert main([command, *socket, "-o", "json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["kind"] == kind
    assert answer["errors"][0]["code"] == "AgentNotRunning"


def test_drift_that_is_not_repaired_or_not_listed_is_shown() -> None:
    item = {
        "reconciler": "route-set",
        "object": "i/s",
        "missing": 12,
        "details": ["10.0.0.0/8", "11.0.0.0/8"],
        "repaired": False,
        "error": "OSError: no",
    }
    assert output.row(verify.COLUMNS, item) == [
        "route-set",
        "i/s",
        "12",
        "0",
        "0",
        "no: OSError: no",
        "10.0.0.0/8, 11.0.0.0/8 (and 10 more)",
    ]
