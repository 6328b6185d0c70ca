"""What an agent is to do, over its API: `waggle plan` against a running agent."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
from msgspec import json

from tests.cells.serve.commands_of_agent import run
from tests.cmd.lab import configuration, service

PORTS = (1790, 1791)
PASSWORD = "not-to-be-seen-anywhere"


def test_a_plan_against_an_agent_is_what_other_manifests_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [*configuration(PORTS), service("web", "198.51.100.10")]
    config = next(item for item in before if item["kind"] == "CiliumBGPPeerConfig")
    config["spec"]["authSecretRef"] = "bgp"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "bgp", "namespace": "kube-system"},
        "stringData": {"password": PASSWORD},
    }
    before.append(secret)
    after = deepcopy(before)
    config = next(item for item in after if item["kind"] == "CiliumBGPPeerConfig")
    config["spec"]["timers"]["holdTimeSeconds"] = 30
    after.append(service("new", "198.51.100.11"))
    rotated = deepcopy(before)
    rotated[-1]["stringData"]["password"] = f"{PASSWORD}-2"
    plans = []
    for name, objects in (("same", before), ("changed", after), ("rotated", rotated)):
        file = tmp_path / f"{name}.json"
        file.write_bytes(json.encode({"apiVersion": "v1", "kind": "List", "items": objects}))
        plans.append(["plan", "-f", str(file), "-o", "json" if name == "same" else "table"])
    run(tmp_path, *before, commands=[*plans, [*plans[1], "--node", "elsewhere"]])
    out, err = capsys.readouterr()
    same, _, changed = out.partition("\n}\n")
    summary = json.decode(same + "}")["summary"]
    assert (summary["changedNodes"], summary["advertisedRoutes"]) == (0, 2)
    assert changed.splitlines() == [
        "on node node-1:",
        "  ! session main/tor-1 (127.0.0.2) resets: holdTime 90 -> 30",
        "  + route 198.51.100.11/32 (Service/shop/new) to main/tor-1, main/tor-2",
        "Plan: 1 session to reset; 2 routes to advertise, on 1 of 1 node.",
        "on node node-1:",
        "  ! session main/tor-1 (127.0.0.2) resets: password changes",
        "Plan: 1 session to reset, on 1 of 1 node.",
    ]
    sentence = "--node elsewhere: the agent is that of node node-1; --from PATH has other nodes"
    assert err == f"waggle plan: {sentence}\n"
    assert PASSWORD not in out
