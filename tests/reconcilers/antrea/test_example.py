"""The example renders without problems, to the routes of its objects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from waggle.__main__ import main

EXAMPLE = Path(__file__).parents[3] / "examples" / "antrea"


def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "-f", str(EXAMPLE), "--node", "edge-7", "--strict"]) == 0
    document = json.loads(capsys.readouterr().out)
    (instance,) = document["instances"]
    assert {p["name"]: [r["prefix"] for r in p["advertise"]] for p in instance["peers"]} == {
        "10.30.4.1": ["10.30.4.200/32", "10.98.14.20/32", "10.201.7.0/24", "203.0.113.40/32"],
        "2001:db8:30::1": ["2001:db8:c9:7::/64"],
    }
