"""`waggle convert`: drafts of BGPPolicy to the shipped form, and both to Cilium's API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconcilers.antrea.dialect import AntreaDialect
from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.compile_manifests import CompiledManifests, OfflineSettings, kinds_of
from resources.antrea.kinds import BGP_POLICY
from resources.manifests.load import load
from tests.support import plain_yaml
from waggle.__main__ import main

DRAFTS = sorted((Path(__file__).parent / "drafts").glob("*.yaml"))
DRAFT = {path.stem: path for path in DRAFTS}
HOST = "k8s-node-control-plane"


def convert(
    capsys: pytest.CaptureFixture[str], path: Path, *arguments: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the objects and the fields of the notes."""
    status = main(["convert", "-f", str(path), *arguments])
    out, err = capsys.readouterr()
    assert status == 0, err
    notes = [line.removeprefix("waggle convert: note: ") for line in err.splitlines()]
    return list(plain_yaml.load_all(out)), notes


def fields(notes: list[str]) -> set[str]:
    """Return the fields that notes name."""
    return {note.split(": ")[1] for note in notes}


@pytest.mark.parametrize("path", DRAFTS, ids=list(DRAFT))
def test_every_draft_becomes_a_valid_policy(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects, _ = convert(capsys, path)
    assert objects[-1]["apiVersion"] == "crd.antrea.io/v1alpha1"
    BGP_POLICY.decode(objects[-1])
    assert BGP_POLICY.unknown_fields(objects[-1]) == []


@pytest.mark.parametrize("path", DRAFTS, ids=list(DRAFT))
def test_every_draft_becomes_valid_objects_of_cilium(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects, _ = convert(capsys, path, "--to", "cilium")
    kinds = kinds_of([CiliumDialect])
    for value in objects:
        kind = kinds.find(value["apiVersion"], value["kind"])
        assert kind is not None
        kind.decode(value)
        assert kind.unknown_fields(value) == []


def test_what_a_policy_can_say(capsys: pytest.CaptureFixture[str]) -> None:
    (node, made), notes = convert(capsys, DRAFT["one-process"])
    annotations = {"node.antrea.io/bgp-router-id": "10.255.0.7"}
    assert node["metadata"] == {"name": HOST, "annotations": annotations}
    assert made["spec"] == {
        "nodeSelector": {"matchLabels": {"kubernetes.io/hostname": HOST}},
        "localASN": 65000,
        "listenPort": 1790,
        "advertisements": {
            "service": {"ipTypes": ["ClusterIP", "ExternalIP"]},
            "pod": {},
            "egress": {},
        },
        "bgpPeers": [
            {
                "address": "192.168.1.254",
                "asn": 60254,
                "port": 179,
                "multihopTTL": 10,
                "holdTimeSeconds": 60,
                "gracefulRestartEnabled": False,
            },
            {
                "address": "192.168.1.253",
                "asn": 60253,
                "port": 179,
                "gracefulRestartTimeSeconds": 90,
            },
        ],
    }
    wanted = "spec.advertisements"
    assert fields(notes) == {
        "spec.localASN",
        "spec.bindAddresses",
        f"{wanted}.externalIPs.serviceSelector",
        f"{wanted}.externalIPs.namespaceSelector",
        f"{wanted}.clusterIPs.serviceSelector",
        f"{wanted}.clusterIPs.namespaceSelector",
        f"{wanted}.egressIPs",
        "spec.bgpPeers[0]",
        "spec.bgpPeers[0].filters",
        "spec.bgpPeers[0].authSecretRef",
    }
    assert any("192.168.1.254-60254 of Secret antrea-bgp-passwords" in note for note in notes)


def test_what_no_draft_has_is_a_note_of_its_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = plain_yaml.load(DRAFT["one-process"].read_text())
    value["spec"] |= {"holdTime": 3}
    value["spec"]["advertisements"] |= {"podIPs": {"podSelector": {}}, "nodeIPs": True}
    value["spec"]["bgpPeers"][1] |= {
        "asn": 4200000000,
        "weight": 5,
        "authSecretRef": {"name": "spine", "key": "password"},
    }
    path = tmp_path / "draft.json"
    path.write_text(json.dumps(value))
    _, before = convert(capsys, DRAFT["one-process"])
    _, notes = convert(capsys, path)
    assert fields(notes) - fields(before) == {
        "spec.holdTime",
        "spec.advertisements.podIPs",
        "spec.advertisements.nodeIPs",
        "spec.bgpPeers[1].asn",
        "spec.bgpPeers[1].weight",
        "spec.bgpPeers[1].authSecretRef",
    }
    assert any("Secret spine, key password to the key 192.168.1.253-" in note for note in notes)


def test_a_value_of_another_type_is_a_note_of_its_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = plain_yaml.load(DRAFT["one-process"].read_text())
    value["spec"] |= {"localASN": "64512", "listenPort": "1790"}
    value["spec"]["advertisements"] |= {"egressIPs": ["a"], "externalIPs": "yes", "serviceIPs": {}}
    value["spec"]["bgpPeers"][1] |= {"port": "1791", "gracefulRestartTime": True}
    path = tmp_path / "draft.json"
    path.write_text(json.dumps(value))
    (_, made), notes = convert(capsys, path)
    wanted, peer = "spec.advertisements", "spec.bgpPeers[1]"
    assert {
        "spec.localASN",
        "spec.listenPort",
        f"{wanted}.egressIPs",
        f"{wanted}.externalIPs",
        f"{wanted}.serviceIPs",
        f"{peer}.port",
        f"{peer}.gracefulRestartTime",
    } <= fields(notes)
    assert "listenPort" not in made["spec"]


def test_fields_beside_several_configurations_are_notes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = plain_yaml.load(DRAFT["two-configurations"].read_text())
    value["spec"] |= {"localASN": 64512, "bgpPeers": [{"address": "10.0.0.1", "asn": 64600}]}
    path = tmp_path / "draft.json"
    path.write_text(json.dumps(value))
    (made,), notes = convert(capsys, path)
    assert made["spec"]["localASN"] == 60001
    assert {"spec.localASN", "spec.bgpPeers"} <= fields(notes)


def test_the_first_of_several_configurations_counts(capsys: pytest.CaptureFixture[str]) -> None:
    (made,), notes = convert(capsys, DRAFT["two-configurations"])
    assert made["spec"]["localASN"] == 60001
    assert made["spec"]["advertisements"] == {"service": {"ipTypes": ["ExternalIP"]}, "egress": {}}
    assert "spec.bgpConfigurations[1]" in fields(notes)


def test_flags_that_are_one_level_too_deep_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    (made,), notes = convert(capsys, DRAFT["service-ips"])
    assert made["spec"]["advertisements"]["service"] == {
        "ipTypes": ["ClusterIP", "ExternalIP", "LoadBalancerIP"]
    }
    assert "spec.bgpConfigurations[0].advertisements.serviceIPs[0].serviceSelector" in fields(notes)


def test_without_the_name_of_a_node_the_router_id_is_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = plain_yaml.load(DRAFT["one-process"].read_text())
    value["spec"]["nodeSelector"] = {"matchLabels": {"pool": "edge"}}
    path = tmp_path / "draft.json"
    path.write_text(json.dumps(value))
    (made,), notes = convert(capsys, path)
    assert (made["kind"], "spec.routerID" in fields(notes)) == ("BGPPolicy", True)


def test_cilium_has_an_instance_for_each_configuration_and_its_selectors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    objects, notes = convert(capsys, DRAFT["two-configurations"], "--to", "cilium")
    (config,) = (o for o in objects if o["kind"] == "CiliumBGPClusterConfig")
    assert [i["localASN"] for i in config["spec"]["bgpInstances"]] == [60001, 60002]
    entries = [
        entry
        for o in objects
        if o["kind"] == "CiliumBGPAdvertisement"
        for entry in o["spec"]["advertisements"]
    ]
    labels = {"app": "web", "io.kubernetes.service.namespace": "prod"}
    assert entries[0] == {
        "advertisementType": "Service",
        "service": {"addresses": ["ExternalIP"]},
        "selector": {"matchLabels": labels},
    }
    assert "spec.bgpConfigurations[0].advertisements" in fields(notes)  # egress


def test_a_password_of_a_draft_is_a_note_for_cilium(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, notes = convert(capsys, DRAFT["one-process"], "--to", "cilium")
    assert any(
        "spec.bgpPeers[0]: " in note and "authSecretRef of the CiliumBGPPeerConfig" in note
        for note in notes
    )


def test_a_draft_without_a_password_has_no_note_about_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = plain_yaml.load(DRAFT["one-process"].read_text())
    for peer in value["spec"]["bgpPeers"]:
        for field in peer.keys() & {"authSecretRef", "authSecret"}:
            del peer[field]
    path = tmp_path / "draft.json"
    path.write_text(json.dumps(value))
    _, notes = convert(capsys, path, "--to", "cilium")
    assert not any("password" in note for note in notes)


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"team": "a"}},
        {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]},
        {"matchLabels": {"kubernetes.io/metadata.name": "prod", "team": "a"}},
    ],
)
def test_services_of_namespaces_that_cilium_cannot_select_are_a_note_and_not_advertised(
    selector: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = plain_yaml.load(DRAFT["one-process"].read_text())
    value["spec"]["advertisements"]["externalIPs"]["namespaceSelector"] = selector
    path = tmp_path / "draft.json"
    path.write_text(json.dumps(value))
    objects, notes = convert(capsys, path, "--to", "cilium")
    field = "spec.advertisements.externalIPs.namespaceSelector"
    assert any(f"{field}: ExternalIP is not converted: " in note for note in notes)
    addresses = [
        entry.get("service", {}).get("addresses")
        for o in objects
        if o["kind"] == "CiliumBGPAdvertisement"
        for entry in o["spec"]["advertisements"]
    ]
    assert ["ExternalIP"] not in addresses


def test_a_draft_without_a_node_selector_selects_every_node_with_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = plain_yaml.load(DRAFT["one-process"].read_text())
    del value["spec"]["nodeSelector"]
    path = tmp_path / "draft.json"
    path.write_text(json.dumps(value))
    (made,), notes = convert(capsys, path)
    assert made["spec"]["nodeSelector"] == {}
    assert any("spec.nodeSelector: is missing: every node is selected" in note for note in notes)


def test_a_policy_and_what_it_becomes_advertise_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.reconcilers.antrea.build import endpoints, node, policy, service

    policies = policy("edge", "ClusterIP", "LoadBalancerIP", pod=True, listenPort=1790)
    others = [
        node(),
        service(type="LoadBalancer", clusterIPs=["10.98.0.1"], ingress=["203.0.113.1"]),
        endpoints("edge-7"),
    ]
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(policies))
    made, _ = convert(capsys, path, "--to", "cilium")

    def sessions(dialect: Any, *objects: dict[str, Any]) -> list[tuple[Any, ...]]:  # noqa: ANN401
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects, *others]})
        directory = tmp_path / dialect.name
        directory.mkdir()
        (directory / "all.json").write_text(text)
        loaded = load([str(directory)], kinds_of([dialect]))
        document = CompiledManifests(loaded, [dialect], OfflineSettings("edge-7")).document()
        keys = ("address", "peerASN", "peerPort", "holdTime", "gracefulRestart", "families")
        return [
            (
                i["localASN"],
                i["routerID"],
                i["listenPort"],
                [p[key] for key in keys],
                [r["prefix"] for r in p["advertise"]],
            )
            for i in document["instances"]
            for p in i["peers"]
        ]

    assert sessions(CiliumDialect, *made) == sessions(AntreaDialect, policies)


def test_render_names_the_group_of_the_shipped_kind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["render", "-f", str(DRAFT["one-process"]), "--node", HOST]) == 0
    problem = json.loads(capsys.readouterr().out)["problems"][0]
    assert problem["objects"] == ["BGPPolicy/test-bgp-policy"]
    assert (problem["field"], "crd.antrea.io/v1alpha1" in problem["message"]) == (
        "apiVersion",
        True,
    )


@pytest.mark.parametrize("arguments", [(), ("--to", "cilium")])
def test_labels_and_annotations_of_a_draft_are_kept(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metadata = {"name": "rack-7", "labels": {"team": "net"}, "annotations": {"note": "the spine's"}}
    spec = {"nodeSelector": {}, "localASN": 64512}
    draft = {"apiVersion": "antrea.io/v1", "kind": "BGPPolicy", "metadata": metadata, "spec": spec}
    path = tmp_path / "draft.yaml"
    path.write_text(yaml.safe_dump(draft))
    objects, _ = convert(capsys, path, *arguments)
    kinds = ("BGPPolicy", "CiliumBGPClusterConfig")
    (made,) = [value for value in objects if value["kind"] in kinds]
    assert made["metadata"] == metadata
