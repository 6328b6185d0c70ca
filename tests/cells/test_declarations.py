"""Which cells the programs have, which of them are on, and what switches on the others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import cells
from cells import declarations
from cells.declarations import API
from cells.dialects import antrea, cilium, frrk8s, metallb, ovnk
from cells.hive import Cell, load
from reconcilers.dialect_entry import DialectEntry
from waggle_agent.__main__ import CELLS
from waggle_operator.__main__ import CELLS as OPERATOR_CELLS

ALWAYS = {
    *("logging", "metrics", "node", "database", "resources", "cilium", "unused-objects", "host"),
    *("claims", "intent", "speaker", "apply", "readiness", "status", "api", "history", "page"),
}
OPERATOR_ALWAYS = {
    *("logging", "metrics", "database", "resources", "cilium", "kubernetes", "operator"),
}


@pytest.mark.parametrize(
    ("flags", "cells"),
    [
        ({}, set()),
        ({"--otlp-endpoint": "http://127.0.0.1:4318"}, {"telemetry"}),
        ({"--http-address": "9100"}, {"http"}),
        ({"--manifests": ["/manifests"]}, {"manifests", "operator"}),
        ({"--kubeconfig": "/kubeconfig"}, {"kubernetes", "report"}),
        ({"--snapshot-file": "/snapshot"}, {"snapshot"}),
        ({"enable_cell": ["antrea"]}, {"antrea"}),
        ({"enable_cell": ["frrk8s"]}, {"frrk8s"}),
        ({"enable_cell": ["metallb"]}, {"metallb", "frrk8s"}),
    ],
    ids=lambda value: " ".join(sorted(value)),
)
def test_what_switches_on_a_cell_of_the_agent(flags: dict[str, Any], cells: set[str]) -> None:
    enabled = load(CELLS, flags=flags).enabled
    assert {name for name, is_on in enabled.items() if is_on} == ALWAYS | cells


@pytest.mark.parametrize(
    ("flags", "cells"),
    [
        ({}, set()),
        ({"--otlp-endpoint": "http://127.0.0.1:4318"}, {"telemetry"}),
        ({"--http-address": "9100"}, {"http"}),
        ({"--webhook": "127.0.0.1:9443"}, {"webhook"}),
        ({"enable_cell": ["antrea"]}, {"antrea"}),
        ({"enable_cell": ["frrk8s"]}, {"frrk8s"}),
        ({"enable_cell": ["metallb"]}, {"metallb", "frrk8s"}),
    ],
    ids=lambda value: " ".join(sorted(value)),
)
def test_what_switches_on_a_cell_of_the_operator(flags: dict[str, Any], cells: set[str]) -> None:
    enabled = load(OPERATOR_CELLS, flags=flags).enabled
    assert {name for name, is_on in enabled.items() if is_on} == OPERATOR_ALWAYS | cells


@pytest.mark.parametrize("cell", [*CELLS, *OPERATOR_CELLS], ids=lambda cell: cell.name)
def test_each_cell_has_a_sentence_and_its_constructors(cell: Cell) -> None:
    assert cell.description.endswith(".")
    assert len(cell.description.split()) > 3
    wiring = cell.wired()
    assert any((wiring.provides, wiring.invokes, wiring.contributes)), cell.name


def test_a_module_wires_one_cell() -> None:
    room = Path(cells.__path__[0])
    wirings = {
        ".".join(path.relative_to(room.parent).with_suffix("").parts)
        for path in room.rglob("*.py")
        if re.search(r"^WIRING\b", path.read_text(), re.MULTILINE)
    }
    declared = [cell.wiring for cell in vars(declarations).values() if isinstance(cell, Cell)]
    assert len(set(declared)) == len(declared)
    assert {name.removesuffix(".__init__") for name in wirings} == set(declared)


def test_the_command_reaches_an_agent_that_has_no_flags() -> None:
    assert load(CELLS).enabled[API.name]


@pytest.mark.parametrize(
    ("entry", "title", "kinds"),
    [
        (
            antrea.DIALECT,
            "Antrea BGP",
            "BGPPolicy",
        ),
        (
            cilium.DIALECT,
            "Cilium BGP",
            "CiliumBGPClusterConfig CiliumBGPPeeringPolicy",
        ),
        (
            frrk8s.DIALECT,
            "FRR-k8s",
            "FRRConfiguration",
        ),
        (
            metallb.DIALECT,
            "MetalLB",
            "BGPPeer",
        ),
        (
            ovnk.DIALECT,
            "OVN-Kubernetes",
            "RouteAdvertisements",
        ),
    ],
    ids=["antrea", "cilium", "frrk8s", "metallb", "ovnk"],
)
def test_a_dialect_has_a_title_and_kinds_that_show_its_use(
    entry: DialectEntry, title: str, kinds: str
) -> None:
    assert entry.title == title
    assert entry.installs_routes is (title in ("FRR-k8s", "OVN-Kubernetes"))
    assert [str(kind.name) for kind in entry.kinds()] == kinds.split()
    assert entry.load().name == entry.name
