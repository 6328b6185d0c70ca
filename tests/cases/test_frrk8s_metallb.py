"""The cases of FRR-k8s's and MetalLB's objects.

The expected results of the first file are the results of FRR-k8s's and MetalLB's own code for the same
objects; ``differs`` marks deliberate differences. The expected results of the second file follow from
the documented rules: each rule on its own, and rules in combination.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cases import expected
from waggle.__main__ import main

FILES: Final = ("frrk8s_metallb.json", "frrk8s_metallb_more.json")
FLAGS: Final = {"class": "--metallb-class", "onConflict": "--on-conflict"}


def cases(name: str) -> Iterator[dict[str, Any]]:
    document = json.loads((Path(__file__).parent / name).read_text())
    common = document.get("common", {})
    for case in document["cases"]:
        objects = [common[one] if isinstance(one, str) else one for one in case["objects"]]
        yield {**case, "objects": objects}


CASES: Final = [case for name in FILES for case in cases(name)]


def arguments(case: dict[str, Any]) -> list[str]:
    given = case.get("args", {})
    found = [text for key, flag in FLAGS.items() if key in given for text in (flag, given[key])]
    if given.get("alwaysBlock"):
        found += ["--always-block", ",".join(given["alwaysBlock"])]
    if given.get("ignoreExcludeLB"):
        found += ["--ignore-exclude-lb=true"]
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_case(case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def rendered(objects: list[dict[str, Any]], *more: str) -> dict[str, Any]:
        path = tmp_path / "objects.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        main(["render", "-f", str(path), "--node", case["node"], *more])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    wanted, objects = case["expect"], case["objects"]
    orders = [objects, objects[::-1]] if case.get("any_order") else [objects]
    for ordered in orders:
        document = rendered(ordered, *arguments(case))
        expected.check_problems(document, wanted.get("problems") or [])
        expected.check_conditions(document, wanted.get("conditions") or [])
        if "instances" in wanted:
            expected.check_instances(document, wanted["instances"])
        if "services" in wanted:
            expected.check_services(document, wanted["services"])
        expected.check_secrets(document, objects)
    if wanted.get("roundTrip"):
        kept = [one for one in objects if one["kind"] in ("Node", "Secret")]
        made = [one for one in document["generated"] if one["kind"] == "FRRConfiguration"]
        assert made
        expected.check_written(made)
        for one in made:
            one["metadata"]["namespace"] = "frr-k8s-system"
        again = rendered(kept + made)
        expected.check_problems(again, [])
        expected.check_instances(again, wanted["instances"])
