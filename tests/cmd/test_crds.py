"""`waggle crds`: what kubectl takes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from reconcilers.compile_manifests import kinds_of
from resources.crds.generate import defined
from resources.kind import Kinds
from tests.support import plain_yaml
from waggle.__main__ import main
from waggle.dialects import DIALECTS


def test_all_definitions_are_printed_as_documents(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds"]) == 0
    text = capsys.readouterr().out
    found = list(plain_yaml.load_all(text))
    dialects = DIALECTS.load()
    of_dialects = (dialect.all_kinds() for dialect in dialects)
    kinds = defined(Kinds(kinds_of(dialects), *of_dialects))
    assert [crd["spec"]["names"]["kind"] for crd in found] == [kind.name for kind in kinds]
    assert {crd["kind"] for crd in found} == {"CustomResourceDefinition"}
    # An anchor would be valid YAML, and a puzzle for people.
    assert "&id" not in text


def test_json_is_one_list_with_the_same_content(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds"]) == 0
    documents = list(plain_yaml.load_all(capsys.readouterr().out))
    assert main(["crds", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "apiVersion": "v1",
        "kind": "List",
        "items": documents,
    }


def test_a_kind_that_is_not_read_has_its_definition(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds", "ServiceBGPStatus", "ConfigurationState"]) == 0
    assert len(list(plain_yaml.load_all(capsys.readouterr().out))) == 2


@pytest.mark.parametrize("name", ["CiliumBGPPeerConfig", "ciliumbgppeerconfigs"])
def test_a_kind_is_named_as_in_a_manifest_or_as_kubectl_does(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["crds", name]) == 0
    (found,) = plain_yaml.load_all(capsys.readouterr().out)
    assert found["metadata"]["name"] == "ciliumbgppeerconfigs.cilium.io"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("Nothing", "no dialect or kind Nothing; the names are antrea, "),
        ("ciliun", "no dialect or kind ciliun; did you mean cilium?"),
        ("bgppeers x-y-z frrconfigration", "; did you mean FRRConfiguration?"),
    ],
)
def test_an_unknown_name_is_an_error_with_a_near_one_or_all(
    words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["crds", *words.split(), "-o", "name"]) == 4
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err


def test_a_peer_of_cilium_without_as_number_has_any_in_each_version(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["crds"]) == 0
    found = list(plain_yaml.load_all(capsys.readouterr().out))
    (crd,) = (one for one in found if one["spec"]["names"]["kind"] == "CiliumBGPClusterConfig")
    for version in crd["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        instance = spec["properties"]["bgpInstances"]["items"]
        peer = instance["properties"]["peers"]["items"]
        assert peer["properties"]["peerASN"]["default"] == 0, version["name"]


def test_a_dialect_names_all_of_its_definitions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds", "frrk8s", "-o", "name"]) == 0
    assert capsys.readouterr().out.split() == [
        f"customresourcedefinition.apiextensions.k8s.io/{plural}.frrk8s.metallb.io"
        for plural in (
            "frrconfigurations",
            "frrk8sconfigurations",
            "frrnodestates",
            "bgpsessionstates",
        )
    ]


@pytest.fixture
def cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A cluster with BGPPeer of another project, and with Waggle's Community."""
    assert main(["crds", "BGPPeer", "Community", "-o", "json"]) == 0
    definitions = json.loads(capsys.readouterr().out)
    (theirs,) = definitions["items"][0]["spec"]["versions"]
    theirs["schema"] = {"openAPIV3Schema": {"type": "object"}}
    path = tmp_path / "crds.json"
    path.write_text(json.dumps(definitions))
    return path


def test_what_another_project_installed_is_left_out(
    cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["crds", "metallb", "--installed", str(cluster), "-o", "name"]) == 0
    printed = capsys.readouterr()
    assert "bgppeers" not in printed.out
    # What is Waggle's, and what is missing.
    assert "communities" in printed.out
    assert "bfdprofiles" in printed.out
    assert printed.err == (
        "waggle crds: skipped: bgppeers.metallb.io is installed, and is not Waggle's; "
        "--replace BGPPeer prints it\n"
    )


def test_another_projects_definition_is_printed_where_a_flag_names_it(
    cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--installed", str(cluster), "--replace", "bgppeers.metallb.io", "-o", "name"]
    assert main(["crds", "metallb", *flags]) == 0
    printed = capsys.readouterr()
    assert "bgppeers.metallb.io" in printed.out
    assert printed.err == ""


def test_ours_are_the_present_definitions_of_waggle(
    cluster: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Input:
        buffer = io.BytesIO(cluster.read_bytes())

    monkeypatch.setattr(sys, "stdin", Input)
    assert main(["crds", "--installed", "-", "--ours", "-o", "name"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "customresourcedefinition.apiextensions.k8s.io/communities.metallb.io\n"
    assert "skipped: bgppeers.metallb.io" in printed.err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty; an empty cluster has a List without items"),
        ("Error from server: nope", "not an object of Kubernetes"),
        ("kind: Pod\nmetadata: {name: a}", "not a list of CustomResourceDefinitions"),
        ("kind: List\nitems: [1]", "not a list of CustomResourceDefinitions"),
        ("kind: List\nitems: [{}]", "a CustomResourceDefinition without a name"),
        ("a: [", "line 2: not YAML"),
    ],
)
def test_an_answer_that_is_no_list_of_definitions_prints_nothing(
    text: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "crds"
    path.write_text(text)
    assert main(["crds", "--installed", str(path), "-o", "name"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"waggle crds: {path}: {reason}" in printed.err


@pytest.mark.parametrize(
    "flags",
    [["--ours"], ["--replace", "BGPPeer"], ["--installed", "x", "--ours", "--replace", "BGPPeer"]],
)
def test_flags_about_a_cluster_need_its_definitions(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["crds", *flags]) == 2
    assert capsys.readouterr().out == ""


def test_members_are_in_the_same_order_in_each_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds", "metallb"]) == 0
    documents = list(plain_yaml.load_all(capsys.readouterr().out))
    assert main(["crds", "metallb", "-o", "json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert json.dumps(documents) == json.dumps(items)
