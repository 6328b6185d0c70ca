"""What the demo says of an agent that advertises nothing, from the answers of its API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from waggle.commands.demo.examples import Examples, find
from waggle.commands.demo.program import DemoError, write_picture
from waggle.commands.demo.reasons import reasons
from waggle.demo_changes import Snapshot

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
            {},
            ("3 objects of metallb.io are not read",),
        ),
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
    ids=[
        "empty directory",
        "peers",
        "unknown node",
        "dialect off",
        "dialect off, twice",
        "held file",
    ],
)
def test_each_reason_is_reported_once(
    status: dict[str, Any], peers: dict[str, Any], expected: tuple[str, ...]
) -> None:
    assert reasons({"items": [status]}, {"items": [], **peers}, HERE, "n") == expected


def test_examples_without_the_router_are_no_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples" / "quickstart").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    found = find(None, None, tmp_path / "copies")
    assert found == Examples(
        tmp_path / "copies" / "quickstart", tmp_path / "copies" / "router.yaml"
    )
    assert found.router.is_file()


@pytest.mark.parametrize("name", ["nowhere/p.svg", "."])
def test_a_picture_that_cannot_be_written_is_one_sentence(name: str, tmp_path: Path) -> None:
    with pytest.raises(DemoError, match=r"--screenshot .*: (No such file|Is a directory)"):
        write_picture(Snapshot(), tmp_path / name)


def test_a_picture_leaves_other_files_alone(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("mine")
    write_picture(Snapshot(), tmp_path / "p.svg")
    assert (tmp_path / "p.txt").read_text() == "mine"
    assert "<svg" in (tmp_path / "p.svg").read_text()


def test_the_manifest_to_edit_exists(tmp_path: Path) -> None:
    examples = Examples(tmp_path, tmp_path / "router.yaml")
    assert examples.edited == tmp_path
    (tmp_path / "bgp.yaml").write_text("")
    assert examples.edited == tmp_path / "bgp.yaml"
    (tmp_path / "services.yaml").write_text("")
    assert examples.edited == tmp_path / "services.yaml"
    file = Examples(tmp_path / "bgp.yaml", tmp_path / "router.yaml")
    assert file.edited == tmp_path / "bgp.yaml"
