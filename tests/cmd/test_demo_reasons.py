"""What the demo says of an agent that advertises nothing, from the answers of its API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from waggle.demo.examples import Examples
from waggle.demo.reasons import reasons

HERE = Path("manifests")
EMPTY = "manifests: is empty; 3 objects are kept"
UNKNOWN = {
    "objects": ["Node/nope"],
    "field": "metadata.name",
    "message": "there is no such node",
}


@pytest.mark.parametrize(
    ("status", "peers", "expected"),
    [
        ({}, {}, ("manifests: no object configures a peer of the node n",)),
        ({}, {"items": [{}]}, ()),
        ({"problems": [UNKNOWN]}, {}, ("Node/nope: metadata.name: there is no such node",)),
        (
            {"unusedObjects": [{"message": "3 objects of metallb.io are not read"}]},
            {"problems": ["3 objects of metallb.io are not read"]},
            ("3 objects of metallb.io are not read",),
        ),
        (
            {
                "degraded": [
                    {"path": "manifests", "message": f"{EMPTY} (and 2 more)"},
                    {"path": "speaker/i/tor", "message": "not Established"},
                ]
            },
            {"items": [{}]},
            (EMPTY,),
        ),
    ],
    ids=["empty directory", "peers", "unknown node", "dialect off", "held file"],
)
def test_each_reason_is_said_once(
    status: dict[str, Any], peers: dict[str, Any], expected: tuple[str, ...]
) -> None:
    assert reasons({"items": [status]}, {"items": [], **peers}, HERE, "n") == expected


def test_the_manifest_to_edit_exists(tmp_path: Path) -> None:
    examples = Examples(tmp_path, tmp_path / "router.yaml")
    assert examples.edited == tmp_path
    (tmp_path / "bgp.yaml").write_text("")
    assert examples.edited == tmp_path / "bgp.yaml"
    (tmp_path / "services.yaml").write_text("")
    assert examples.edited == tmp_path / "services.yaml"
    file = Examples(tmp_path / "bgp.yaml", tmp_path / "router.yaml")
    assert file.edited == tmp_path / "bgp.yaml"
