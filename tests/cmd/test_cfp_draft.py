"""The YAML of the design documents of Cilium's BGP: applied, converted, or refused with a sentence.

``design_documents`` has every block of CFP-28175, and the policy of the v1 documentation as printed
(its indentation is lost there).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import json

from tests.cmd.lab import NODE
from tests.support import plain_yaml
from waggle.__main__ import main

BLOCKS = Path(__file__).parent / "design_documents"
CONVERTED = {
    "cfp-28175-cluster-config",
    "cfp-28175-advertisement",
    "cfp-28175-peer-config",
    "cfp-28175-node-config",
    "cfp-28175-translated-advertisement",
    "cfp-28175-translated-peer-config",
    "cfp-28175-translated-node-config",
}
APPLIED = {"cfp-28175-peering-policy"}
REFUSED = {
    "cfp-28175-path-attributes": "apiVersion: is required, and a string",
    "v1-peering-policy-as-printed": "CiliumBGPPeeringPolicy: metadata: is required",
}


def convert(capsys: pytest.CaptureFixture[str], *paths: Path) -> tuple[int, list[Any], str]:
    """Return exit status, objects and messages of a conversion."""
    status = main(["convert", "-f", *map(str, paths)])
    shown = capsys.readouterr()
    return status, [item for item in plain_yaml.load_all(shown.out) if item], shown.err


def problems(capsys: pytest.CaptureFixture[str], *paths: Path) -> list[dict[str, Any]]:
    """Return the problems of manifests, except that of the missing node."""
    assert main(["render", "-f", *map(str, paths), "--node", "n"]) == 0
    found = json.decode(capsys.readouterr().out)["problems"]
    return [problem for problem in found if problem["objects"] != ["Node/n"]]


def test_every_block_of_the_documents_is_here() -> None:
    assert {path.stem for path in BLOCKS.iterdir()} == CONVERTED | APPLIED | REFUSED.keys()


@pytest.mark.parametrize("name", sorted(CONVERTED))
def test_an_object_of_the_draft_is_refused_and_converted(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = BLOCKS / f"{name}.yaml"
    assert problems(capsys, path) != []
    status, objects, _ = convert(capsys, path)
    assert status == 0
    (converted,) = objects
    (given,) = [item for item in plain_yaml.load_all(path.read_text()) if item]
    assert (converted["apiVersion"], converted["kind"]) == ("cilium.io/v2", given["kind"])
    result = tmp_path / "v2.yaml"
    result.write_text(yaml.safe_dump(converted))
    found = problems(capsys, result)
    # The draft's own timer and port: accepted by v2, and reported as without effect.
    assert [p["field"] for p in found if p["field"] != "spec.transport.localPort"] == []


@pytest.mark.parametrize("name", sorted(APPLIED))
def test_an_object_of_v1_is_applied_and_converted(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = BLOCKS / f"{name}.yaml"
    assert problems(capsys, path) == []
    status, objects, _ = convert(capsys, path)
    assert status == 0
    assert {item["kind"] for item in objects} == {
        "CiliumBGPPeerConfig",
        "CiliumBGPAdvertisement",
        "CiliumBGPClusterConfig",
    }


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_no_object_is_refused_with_a_sentence(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, objects, errors = convert(capsys, BLOCKS / f"{name}.yaml")
    assert (status, objects) == (1, [])
    assert REFUSED[name] in errors


def test_the_fields_of_the_draft_are_converted_to_v2(capsys: pytest.CaptureFixture[str]) -> None:
    _, objects, errors = convert(capsys, *(BLOCKS / f"{name}.yaml" for name in sorted(CONVERTED)))
    by_name = {(item["kind"], item["metadata"]["name"]): item["spec"] for item in objects}
    config = by_name["CiliumBGPPeerConfig", "rack1"]
    assert config["timers"] == {
        "connectRetryTimeSeconds": 3, "holdTimeSeconds": 12, "keepAliveTimeSeconds": 3,
    }  # fmt: skip
    assert config["gracefulRestart"] == {"enabled": True, "restartTimeSeconds": 30}
    assert all("advertisements" in family for family in config["families"])
    (instance,) = by_name["CiliumBGPClusterConfig", "01-cilium-bgp-config"]["bgpInstances"]
    assert instance["name"] == "65001"
    assert [peer["name"] for peer in instance["peers"]] == ["10.1.1.1", "10.1.1.2"]
    pods, services = by_name["CiliumBGPAdvertisement", "podcidrs"]["advertisements"]
    assert pods["attributes"]["communities"] == {"standard": ["65001:1", "65001:2"]}
    assert services["advertisementType"] == "Service"
    assert services["service"] == {"addresses": ["LoadBalancerIP"]}
    assert "selects Services by their labels in v2, and not pools" in errors
    assert "'podCIDRs' is no name of an object, 'podcidrs' is used" in errors


@pytest.mark.parametrize(
    ("draft", "converted"),
    [
        (
            {"gracefulRestartSeconds": 30},
            {"gracefulRestart": {"enabled": True, "restartTimeSeconds": 30}},
        ),
        ({"gracefulRestartSeconds": 0}, {"gracefulRestart": {"enabled": False}}),
        ({"timers": {"connectRetrySeconds": 5}}, {"timers": {"connectRetryTimeSeconds": 5}}),
        ({"timers": {"keepaliveIntervalSeconds": 5}}, {"timers": {"keepAliveTimeSeconds": 5}}),
        (
            {"families": [{"afi": "ipv4", "safi": "unicast", "advertisement": {}}]},
            {"families": [{"afi": "ipv4", "safi": "unicast", "advertisements": {}}]},
        ),
    ],
)
def test_one_field_of_the_draft_suffices_to_have_it_converted(
    draft: dict[str, Any],
    converted: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    value = {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": "CiliumBGPPeerConfig",
        "metadata": {"name": "rack1"},
        "spec": draft,
    }
    path = tmp_path / "draft.yaml"
    path.write_text(yaml.safe_dump(value))
    status, (found,), _ = convert(capsys, path)
    assert (status, found["apiVersion"], found["spec"]) == (0, "cilium.io/v2", converted)


def test_an_override_gets_the_name_of_its_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "override.yaml"
    peer = {"peerAddress": "10.1.1.1", "localAddress": "10.1.1.10"}
    instance = {"localASN": 65001, "routerID": "10.0.0.1", "peers": [peer]}
    value = {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": "CiliumBGPNodeConfigOverride",
        "metadata": {"name": "whatever"},
        "spec": {"nodeRef": NODE, "bgpInstances": [instance]},
    }
    path.write_text(yaml.safe_dump(value))
    status, objects, errors = convert(capsys, path)
    assert status == 0
    assert objects[0]["metadata"]["name"] == NODE
    assert objects[0]["spec"] == {
        "bgpInstances": [
            {
                "name": "65001",
                "routerID": "10.0.0.1",
                "peers": [{"name": "10.1.1.1", "localAddress": "10.1.1.10"}],
            }
        ]
    }
    assert f"an override has the name of its node: '{NODE}'" in errors


def test_the_converted_draft_has_sessions_and_routes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("cluster-config", "advertisement", "peer-config")
    _, objects, _ = convert(capsys, *(BLOCKS / f"cfp-28175-{name}.yaml" for name in names))
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE, "labels": {"rack": "rack1"}},
        "spec": {"podCIDRs": ["10.244.1.0/24"]},
        "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.11"}]},
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"service": "lb-1"}},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "198.51.100.10"}]}},
    }
    path = tmp_path / "all.json"
    path.write_bytes(json.encode({"apiVersion": "v1", "kind": "List",
                                  "items": [*objects, node, service]}))  # fmt: skip
    assert main(["render", "-f", str(path), "--node", NODE]) == 0
    (instance,) = json.decode(capsys.readouterr().out)["instances"]
    assert [peer["address"] for peer in instance["peers"]] == ["10.1.1.1", "10.1.1.2"]
    for peer in instance["peers"]:
        routes = {route["prefix"]: route["communities"] for route in peer["advertise"]}
        assert routes == {
            "10.244.1.0/24": ["65001:1", "65001:2"],
            "198.51.100.10/32": ["65001:100"],
        }
