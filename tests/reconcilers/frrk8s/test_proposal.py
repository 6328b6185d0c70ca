"""The YAML blocks of FRR-k8s's proposal: applied, converted, or refused with the reason.

``proposal/`` has them as they are. The merged one contradicts the objects that it is merged
from: 192.168.10.0/32 is MetalLB's for peer1 alone, which is 172.18.0.5, but the generated object and
the merged one advertise it to 172.18.0.6; the generated object is of one node, and the two others,
which are merged with it, of all. It also allows prefixes by a bare list where the other blocks have
``prefixes``, and is no object: it has neither apiVersion nor kind.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import plain_yaml
from waggle.__main__ import main

BLOCKS = Path(__file__).parent / "proposal"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "kind-worker", "labels": {"kubernetes.io/hostname": "kind-worker"}},
    "status": {"addresses": [{"type": "InternalIP", "address": "172.18.0.3"}]},
}


@pytest.fixture
def converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Convert the three FRRConfigurations."""
    names = ("generated-by-metallb", "accept-all", "advertise-extra")
    paths = [str(BLOCKS / f"{name}.yaml") for name in names]
    assert main(["convert", "-f", *paths]) == 0
    found = list(plain_yaml.load_all(capsys.readouterr().out))
    (tmp_path / "converted.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, *found]})
    )
    return found


def rendered(capsys: pytest.CaptureFixture[str], path: Path, *arguments: str) -> dict[str, Any]:
    main(["render", "-f", str(path), "--node", "kind-worker", *arguments])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_its_names_match_v1beta1(converted: list[dict[str, Any]]) -> None:
    first, accept, extra = (one["spec"] for one in converted)
    assert first["nodeSelector"] == {"matchLabels": {"kubernetes.io/hostname": "kind-worker"}}
    assert first["bgp"]["routers"][0]["prefixes"] == ["192.168.10.0/32"]
    neighbors = accept["bgp"]["routers"][0]["neighbors"]
    assert neighbors[0]["toReceive"] == {"allowed": {"mode": "all"}}
    neighbors = extra["bgp"]["routers"][0]["neighbors"]
    assert neighbors[0]["toAdvertise"] == {"allowed": {"prefixes": ["192.168.11.0/32"]}}


def test_they_merge_to_what_the_proposal_says(
    converted: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(converted) == 3
    document = rendered(capsys, tmp_path / "converted.json", "--frrk8s-namespace", "metallb-system")
    assert document["problems"] == []
    (instance,) = document["instances"]
    assert instance["originate"] == ["192.168.10.0/32", "192.168.11.0/32"]
    peers = {peer["address"]: peer for peer in instance["peers"]}
    assert peers["172.18.0.5"]["advertise"] == []
    prefixes = [route["prefix"] for route in peers["172.18.0.6"]["advertise"]]
    assert prefixes == ["192.168.10.0/32", "192.168.11.0/32"]
    assert (peers["172.18.0.6"]["accept"], peers["172.18.0.5"]["accept"]) == ("all", [])


def test_they_are_in_a_namespace_that_does_not_count_by_default(
    converted: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = rendered(capsys, tmp_path / "converted.json")
    assert document["instances"] == []
    reasons = [condition["reason"] for condition in document["conditions"]]
    assert reasons == ["OtherNamespace"] * len(converted)


def test_the_namespace_without_effect_is_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "-f", str(BLOCKS / "accept-all.yaml")]) == 0
    errors = capsys.readouterr().err
    assert (
        "metadata.namespace: has an effect in frr-k8s-system alone (--frrk8s-namespace)" in errors
    )


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("accept-all", "frrk8s.metallb.io/v1alpha1 FRRConfiguration is not read"),
        ("merged", "is required, and a string"),
        ("node-status", "an object is expected, this is str"),
    ],
)
def test_what_is_no_object_of_a_present_version_is_refused(
    block: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document = rendered(capsys, BLOCKS / f"{block}.yaml")
    assert message in " ".join(problem["message"] for problem in document["problems"])


def test_the_advertisement_with_its_specification_in_the_metadata_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = rendered(capsys, BLOCKS / "metallb.yaml")
    (problem, *_) = document["problems"]
    assert problem["objects"] == ["BGPAdvertisement/metallb-system/advertisement"]


def test_a_password_is_the_name_of_a_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    neighbor = {"address": "172.18.0.6", "asn": 1, "password": {"name": "s", "namespace": "n"}}
    draft = {
        "apiVersion": "frrk8s.metallb.io/v1alpha1",
        "kind": "FRRConfiguration",
        "metadata": {"name": "x"},
        "spec": {"raw": "line vty", "bgp": {"routers": [{"asn": 1, "neighbors": [neighbor]}]}},
    }
    path = tmp_path / "draft.json"
    path.write_text(json.dumps(draft))
    assert main(["convert", "-f", str(path)]) == 0
    printed = capsys.readouterr()
    (found,) = plain_yaml.load_all(printed.out)
    assert found["spec"]["raw"] == {"rawConfig": "line vty"}
    (converted,) = found["spec"]["bgp"]["routers"][0]["neighbors"]
    assert converted["passwordSecret"] == {"name": "s"}
    assert "password.namespace: has no effect" in printed.err
