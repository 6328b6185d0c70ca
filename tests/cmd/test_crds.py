"""`waggle crds`: what kubectl takes."""

from __future__ import annotations

import json

import pytest
import yaml

from reconcilers.offline import kinds_of
from resources.crds.generate import defined
from waggle.__main__ import main
from waggle.dialects import DIALECTS


def test_all_definitions_are_printed_as_documents(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds"]) == 0
    text = capsys.readouterr().out
    found = list(yaml.safe_load_all(text))
    dialects = DIALECTS.load()
    unread = [kind for dialect in dialects for kind in dialect.defined_kinds]
    kinds = defined((*kinds_of(dialects), *unread))
    assert [crd["spec"]["names"]["kind"] for crd in found] == [kind.name for kind in kinds]
    assert {crd["kind"] for crd in found} == {"CustomResourceDefinition"}
    # An anchor would be valid YAML, and a puzzle for people.
    assert "&id" not in text


def test_json_is_one_list_with_the_same_content(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds"]) == 0
    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    assert main(["crds", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "apiVersion": "v1",
        "kind": "List",
        "items": documents,
    }


def test_a_kind_that_is_not_read_has_its_definition(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds", "ServiceBGPStatus", "ConfigurationState"]) == 0
    assert len(list(yaml.safe_load_all(capsys.readouterr().out))) == 2


@pytest.mark.parametrize("name", ["CiliumBGPPeerConfig", "ciliumbgppeerconfigs"])
def test_a_kind_is_named_as_in_a_manifest_or_as_kubectl_does(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["crds", name]) == 0
    (found,) = yaml.safe_load_all(capsys.readouterr().out)
    assert found["metadata"]["name"] == "ciliumbgppeerconfigs.cilium.io"


def test_an_unknown_kind_is_an_error_that_lists_the_kinds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["crds", "Service"]) == 4
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no kind Service; the kinds are " in captured.err
    assert "CiliumBGPClusterConfig, " in captured.err


def test_a_peer_of_cilium_without_as_number_has_any_in_each_version(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["crds"]) == 0
    found = list(yaml.safe_load_all(capsys.readouterr().out))
    (crd,) = (one for one in found if one["spec"]["names"]["kind"] == "CiliumBGPClusterConfig")
    for version in crd["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        instance = spec["properties"]["bgpInstances"]["items"]
        peer = instance["properties"]["peers"]["items"]
        assert peer["properties"]["peerASN"]["default"] == 0, version["name"]
