"""The acceptance cases of the dialect: objects, a node and flags in; the document of render out."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import Any

import pytest

from tests.reconcilers.antrea.cases import CASES
from waggle.__main__ import main

PLAIN: dict[str, Any] = {
    "communities": [],
    "largeCommunities": [],
    "localPreference": None,
    "nextHop": None,
}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": case["objects"]}))
    flags = ["-f", str(path), "--node", case["node"], *case.get("options", ())]
    assert main(["render", *flags, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    expected = case["expect"]
    _check_instance(document, expected["instance"])
    _check_peers(document, expected["peers"])
    conditions = {c["name"]: (c["type"], c["reason"], c["status"]) for c in document["conditions"]}
    for name, reason in expected["policies"].items():
        assert conditions[name] == ("Effective", reason, str(reason == "Effective")), name
    assert document["annotations"] == expected["annotations"]
    _check_problems(document["problems"], expected["problems"])


def _check_instance(document: dict[str, Any], expected: dict[str, Any] | None) -> None:
    if expected is None:
        assert document["instances"] == []
        return
    (instance,) = document["instances"]
    assert {key: instance[key] for key in expected} == expected


def _check_peers(document: dict[str, Any], expected: dict[str, Any]) -> None:
    peers = {p["address"]: p for i in document["instances"] for p in i["peers"]}
    assert sorted(peers) == sorted(expected)
    for address, wanted in expected.items():
        peer = peers[address]
        assert {k: peer[k] for k in wanted if k != "routes"} == {
            k: v for k, v in wanted.items() if k != "routes"
        }
        routes = {
            r["prefix"]: [[o["kind"], o["namespace"], o["name"], o["type"]] for o in r["origins"]]
            for r in peer["advertise"]
        }
        assert routes == {r["prefix"]: sorted(r["origins"], key=str) for r in wanted["routes"]}
        assert list(routes) == sorted(routes, key=_address_order)
        assert all({k: r[k] for k in PLAIN} == PLAIN for r in peer["advertise"])
        assert all(r["origin"] == "igp" for r in peer["advertise"])


def _address_order(prefix: str) -> tuple[int, int, int]:
    network = ipaddress.ip_network(prefix)
    return (network.version, int(network.network_address), network.prefixlen)


def _check_problems(found: list[dict[str, Any]], expected: list[dict[str, str]]) -> None:
    if not expected:
        assert found == []
    for wanted in expected:
        assert any(
            wanted["object"] in p["objects"] and p["field"].startswith(wanted.get("field", ""))
            for p in found
        ), wanted
