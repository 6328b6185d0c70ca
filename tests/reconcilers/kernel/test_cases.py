"""The acceptance cases of kernel routes: objects, a node, flags and received routes in; rows out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from waggle.__main__ import main

CASES: Final[list[dict[str, Any]]] = json.loads((Path(__file__).parent / "cases.json").read_text())[
    "cases"
]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects, received = tmp_path / "objects.json", tmp_path / "received.json"
    objects.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": case["objects"]}))
    received.write_text(json.dumps(case["received"]))
    flags = ["-f", str(objects), "--node", case["node"], *case["options"]]
    assert main(["render", *flags, "--received", str(received), "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    expected = case["expect"]
    assert _rows(document["kernel"], expected["kernel"]) == expected["kernel"]
    reasons = [(row["prefix"], row["reason"]) for row in document["notInstalled"]]
    assert {(row["prefix"], row["reason"]) for row in expected["notInstalled"]} <= set(reasons)


def _rows(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows without weights, and without the interfaces that the case does not name."""
    named = {
        (row["table"], row["prefix"]): any("dev" in hop for hop in row["nexthops"])
        for row in expected
    }
    return [
        {
            **row,
            "nexthops": [
                {
                    key: value
                    for key, value in hop.items()
                    if key == "via" or (key == "dev" and named.get((row["table"], row["prefix"])))
                }
                for hop in row["nexthops"]
            ],
        }
        for row in found
    ]
