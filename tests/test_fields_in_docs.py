"""The pages of FRR-k8s and MetalLB name every field of their definitions, and cases that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resources.crds.generate import custom_resource_definition
from resources.frrk8s import kinds as frrk8s
from resources.kind import Kind
from resources.metallb import kinds as metallb

ROOT = Path(__file__).resolve().parents[1]
CASES = sorted((ROOT / "tests" / "cases").glob("frrk8s_metallb*.json"))
KINDS = [
    *(("frrk8s", kind) for kind in (frrk8s.FRR_CONFIGURATION, frrk8s.FRRK8S_CONFIGURATION)),
    *(("frrk8s", kind) for kind in (frrk8s.FRR_NODE_STATE, frrk8s.BGP_SESSION_STATE)),
    *(("metallb", kind) for kind in metallb.KINDS if kind.definition is not None),
]


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text()


def fields(schema: dict[str, Any]) -> Iterator[str]:
    """Yield the names of the fields of a schema; conditions are the same for every kind."""
    for name, part in schema.get("properties", {}).items():
        yield name
        if name != "conditions":
            yield from fields(part)
    yield from fields(schema["items"]) if "items" in schema else ()


@pytest.mark.parametrize(("name", "kind"), KINDS, ids=lambda value: getattr(value, "name", value))
def test_every_field_is_on_the_page(name: str, kind: Kind[Any]) -> None:
    text = page(name)
    for version in custom_resource_definition(kind)["spec"]["versions"]:
        properties = version["schema"]["openAPIV3Schema"]["properties"]
        found = {*fields(properties.get("spec", {})), *fields(properties.get("status", {}))}
        assert not [field for field in sorted(found) if not re.search(rf"\b{field}\b", text)]


@pytest.mark.parametrize("name", ["frrk8s", "metallb"])
def test_the_cases_on_the_page_exist(name: str) -> None:
    known = {case["id"] for path in CASES for case in json.loads(path.read_text())["cases"]}
    named = set(re.findall(r"\b[BFM]\d{3}\b", page(name)))
    assert named - known == set()
