"""`waggle explain` of configured prefixes: the object that allows them, or that none does."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.reconcilers.frrk8s.agent_in_memory import AgentInMemory
from tests.reconcilers.frrk8s.build import PEER, configuration, neighbor, router
from waggle.__main__ import main


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("10.1.0.0/16", "Advertised"),
        ("10.2.0.0/16", "NotInAllowList"),
        ("2001:db8::1", "FamilyNotConfigured"),
    ],
)
def test_a_configured_prefix(
    target: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    advertise = {"allowed": {"prefixes": ["10.1.0.0/16"]}}
    prefixes = ["10.1.0.0/16", "10.2.0.0/16", "2001:db8::/32"]
    one = router(neighbor(toAdvertise=advertise), prefixes=prefixes)
    path = tmp_path / "x.json"
    path.write_text(json.dumps(configuration("x", {"bgp": {"routers": [one]}})))
    main(["explain", target, "-f", str(path), "--node", "n1", "-o", "json"])
    (found,) = json.loads(capsys.readouterr().out)["items"]
    assert (found["peer"], found["reason"], found["object"]["name"]) == (PEER, reason, "x")


def test_an_object_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = router(neighbor(), prefixes=["10.1.0.0/16", "10.2.0.0/16"])
    path = tmp_path / "x.json"
    path.write_text(json.dumps(configuration("x", {"bgp": {"routers": [one]}})))
    target = "FRRConfiguration/frr-k8s-system/x"
    assert main(["explain", target, "-f", str(path), "--node", "n1", "-o", "json"]) == 0
    items: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["items"]
    assert {item["reason"] for item in items} == {"NotInAllowList"}
    assert [item["prefix"] for item in items] == ["10.1.0.0/16", "10.2.0.0/16"]


def test_an_agent_has_no_objects_of_other_nodes_to_compare() -> None:
    """It stores only FRRConfigurations that select its node, and explains where all are read."""
    agent = AgentInMemory("n1")
    agent.settle()
    (found,) = [e for group in agent.compiler.explainer().explain() for e in group]
    assert found.reason == "NoPeers"
    assert (
        "of BGPPeer, FRRConfiguration only objects that select the node are read" in found.message
    )
