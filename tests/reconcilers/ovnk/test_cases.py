"""The acceptance cases of the dialect: objects, a node and flags in; the document of render out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.reconcilers.ovnk.cases import CASES
from waggle.__main__ import main

KEY = "k8s.ovn.org/route-advertisements"
ROOT = Path(__file__).parents[3]


def pruned(value: Any) -> Any:  # noqa: ANN401
    """Return JSON without empty values and the default mode: absent and empty are the same."""
    if isinstance(value, dict):
        found = {key: pruned(one) for key, one in value.items()}
        found = {key: one for key, one in found.items() if one not in (None, "", [], {}, False)}
        if found.get("mode") == "filtered":
            del found["mode"]
        return found
    return [pruned(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": case["objects"]}))
    flags = ["-f", str(path), "--node", case["node"], *case["options"]]
    assert main(["render", *flags, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    expected = case["expect"]
    _check_generated(document["generated"], expected)
    _check_conditions(document["conditions"], expected.get("conditions", ()))
    assert sorted(document["deleted"]) == sorted(expected["deleted"])
    annotations = [
        {key: one[key] for key in ("kind", "namespace", "name", "set")}
        for one in document["annotations"]
    ]
    assert all(one in annotations for one in expected["annotations"])
    assert bool(annotations) == bool(expected["annotations"])
    _check_problems(document["problems"], expected.get("problems"))
    if "wire" in expected:
        _check_advertised(document["instances"], expected["wire"].get(case["node"], {}))


def _check_generated(found: list[dict[str, Any]], expected: dict[str, Any]) -> None:
    def key(metadata: dict[str, Any]) -> tuple[str, str]:
        return metadata["namespace"], metadata["annotations"][KEY]

    annotated = [one for one in found if KEY in one["metadata"].get("annotations", {})]
    objects = {key(one["metadata"]): one for one in annotated}
    wanted = {key(one): one for one in expected["generated"]}
    assert objects.keys() == wanted.keys()
    for identity, of_case in wanted.items():
        metadata = objects[identity]["metadata"]
        assert metadata["labels"] == of_case["labels"]
        assert metadata["name"] == of_case.get("name", metadata["name"])
        assert pruned(objects[identity]["spec"]) == pruned(of_case["spec"])
    for whole in expected.get("generatedWhole", ()):
        (one,) = (
            o for o in found if (o["kind"], o["metadata"]["name"]) == (whole["kind"], whole["name"])
        )
        assert pruned(one["spec"]) == pruned(whole["spec"])


def _check_conditions(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    by_object = {(one["kind"], one["name"], one["type"]): one for one in found}
    for wanted in expected:
        one = by_object[wanted["kind"], wanted["name"], wanted["type"]]
        assert (one["status"], one["reason"]) == (wanted["status"], wanted["reason"])
        assert all(text in one["message"] for text in wanted.get("messageContains", ()))


def _check_problems(found: list[dict[str, Any]], expected: list[dict[str, str]] | None) -> None:
    if expected == []:
        assert found == []
    for wanted in expected or ():
        assert any(
            wanted["object"] in p["objects"] and p["field"].startswith(wanted["field"])
            for p in found
        ), wanted


def _check_advertised(instances: list[dict[str, Any]], expected: dict[str, list[str]]) -> None:
    found = {
        f"{instance['vrf'] or ''}|{peer['address'] or peer['interface']}": sorted(
            route["prefix"] for route in peer["advertise"]
        )
        for instance in instances
        for peer in instance["peers"]
    }
    assert {key: one for key, one in found.items() if one} == {
        key: sorted(one) for key, one in expected.items() if one
    }


def test_the_page_names_cases_and_files_that_exist() -> None:
    page = (ROOT / "docs" / "ovn-kubernetes.md").read_text()
    section = page.partition("## Supported, field by field")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][2:]
    named = [name for row in rows for name in row.rstrip(" |").rpartition("| ")[2].split(", ")]
    cases = {f"{one['name'].removeprefix('ovnk-')}" for one in CASES}
    missing = [
        name
        for name in named
        if name not in cases and not (ROOT / "tests" / name.strip("`")).is_file()
    ]
    assert len(named) > 40
    assert missing == []
