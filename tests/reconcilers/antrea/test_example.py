"""The example renders without problems, to the routes of its objects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from waggle.__main__ import main

EXAMPLE = Path(__file__).parents[3] / "examples" / "antrea"


def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "-f", str(EXAMPLE), "--node", "node-1", "--strict"]) == 0
    document = json.loads(capsys.readouterr().out)
    (instance,) = document["instances"]
    assert {p["name"]: [r["prefix"] for r in p["advertise"]] for p in instance["peers"]} == {
        "127.0.0.2": ["10.98.14.20/32", "10.201.7.0/24", "192.0.2.200/32", "203.0.113.40/32"],
    }
