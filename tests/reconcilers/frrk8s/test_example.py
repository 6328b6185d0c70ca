"""The example of the documentation compiles without a problem."""

import json
from pathlib import Path

import pytest

from waggle.__main__ import main

EXAMPLE = Path(__file__).parents[3] / "examples" / "frrk8s"


def test_the_example_is_merged(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "-f", str(EXAMPLE), "--node", "node-1"]) == 0
    document = json.loads(capsys.readouterr().out)
    (instance,) = document["instances"]
    assert document["problems"] == []
    (peer,) = instance["peers"]
    assert [route["prefix"] for route in peer["advertise"]] == ["198.51.100.0/24", "203.0.113.0/24"]
    types = [origin["type"] for route in peer["advertise"] for origin in route["origins"]]
    assert set(types) == {"Prefix"}
    assert peer["accept"] == [{"prefix": "10.0.0.0/8", "ge": None, "le": 24}]
