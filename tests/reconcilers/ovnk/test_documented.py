"""The examples of OVN-Kubernetes' page "Route Advertisements", alone and together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.kind import Kind
from resources.manifests.yamlfile import parse_yaml
from resources.ovnk.kinds import CLUSTER_NETWORK, ROUTE_ADVERTISEMENTS
from tests.reconcilers.ovnk.operator_cluster import node
from waggle.__main__ import main

EXAMPLES: Final = (Path(__file__).parent / "documented.yaml").read_bytes()
KINDS: Final[dict[str, Kind[Any]]] = {
    kind.name: kind for kind in (FRR_CONFIGURATION, CLUSTER_NETWORK, ROUTE_ADVERTISEMENTS)
}


def examples() -> list[dict[str, Any]]:
    return [document.value for document in parse_yaml(EXAMPLES)]


@pytest.mark.parametrize("value", examples(), ids=lambda value: value["metadata"]["name"])
def test_an_example_is_accepted_or_says_how_a_label_is_written(value: dict[str, Any]) -> None:
    kind = KINDS[value["kind"]]
    assert kind.unknown_fields(value) == []
    broken = kind.decode(value).broken_rules
    if '"advertise": true' not in json.dumps(value):
        assert broken == ()
        return
    (error,) = broken
    assert error.path.endswith("matchLabels.advertise")
    assert error.message == 'expected a string, got a boolean true; write "true"'


def quoted(value: Any) -> Any:  # noqa: ANN401
    """Return JSON with the label as its API wants it."""
    if isinstance(value, dict):
        return {
            key: "true" if one is True and key == "advertise" else quoted(one)
            for key, one in value.items()
        }
    return [quoted(one) for one in value] if isinstance(value, list) else value


def render(
    found: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "extranet",
            "labels": {"network": "extranet", "k8s.ovn.org/primary-user-defined-network": ""},
        },
    }
    subnets = {"default": ["10.128.2.0/23"], "cluster_udn_extranet": ["22.100.2.0/24"]}
    master = node("master-1", subnets, "192.168.111.20/24")
    master["metadata"]["labels"]["egress-nodes"] = "bgp"
    items = [*found, namespace, master]
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    arguments = ["-f", str(path), "--node", "master-1", "--ovnk=generate", "-o", "json"]
    assert main(["render", *arguments]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_the_examples_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The source import-extranet has no router of the default VRF: unlabelled, all are accepted."""
    found = [one for one in quoted(examples()) if one["metadata"]["name"] != "ovnk-generated-vl8gk"]

    def accepted(document: dict[str, Any]) -> dict[str, str]:
        conditions = [c for c in document["conditions"] if c["kind"] == "RouteAdvertisements"]
        return {c["name"]: c["message"] if c["status"] == "False" else "" for c in conditions}

    messages = accepted(render(found, tmp_path, capsys))
    assert '"import-extranet"' in messages.pop("default")
    assert messages["extranet"] == ""
    for one in found:
        if one["metadata"]["name"] == "import-extranet":
            one["metadata"]["labels"] = {}
    document = render(found, tmp_path, capsys)
    assert set(accepted(document).values()) == {""}
    peers = {p["address"]: p for i in document["instances"] for p in i["peers"]}
    prefixes = {
        name: {route["prefix"] for route in peer["advertise"]} for name, peer in peers.items()
    }
    assert prefixes == {
        "192.168.111.3": {"10.128.2.0/23", "22.100.2.0/24"},
        "192.168.221.3": {"22.100.2.0/24"},
    }
    assert all(peer["allowASInOrigin"] for peer in peers.values())
