"""``waggle check``: every node of the manifests, one line for each problem."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from reconcilers.check_manifests import ASSUMED_NODES
from tests.cmd.lab import configuration as configuration_of_lab
from tests.cmd.lab import service as service_of_lab
from tests.reconcilers.admission.claims import ClaimDialect, claim
from tests.reconcilers.frrk8s.build import configuration, neighbor, router
from tests.support.cells import entry
from waggle.__main__ import main
from waggle.dialects import Dialects

CLAIMS = Dialects((entry(ClaimDialect),))


def node(name: str, rack: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"rack": rack}},
    }


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    """Two racks; on the nodes of one of them two Claims are in conflict."""
    objects = [node(f"a{i}", "a") for i in range(5)] + [node("b0", "b")]
    objects += [claim("one", 1), claim("two", 2, labels={"rack": "a"})]
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return path


def check(*arguments: str | Path) -> int:
    return main(["check", *map(str, arguments)], dialects=CLAIMS)


def test_a_problem_is_one_line_with_the_nodes_that_have_it(
    manifests: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check("-f", manifests) == 1
    out, err = capsys.readouterr()
    assert out == (
        "Claim/one, Claim/two: spec.value: port: 1 and 2 (nodes a0, a1, a2 and 2 more)\n"
    )
    assert err == "1 problem on 6 nodes\n"


def test_nodes_with_the_same_objects_are_compiled_once(manifests: Path) -> None:
    ClaimDialect.compiled = 0
    check("-f", manifests)
    assert ClaimDialect.compiled == 2


def test_json_has_every_node(manifests: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check("-f", manifests, "-o", "json")
    document = json.loads(capsys.readouterr().out)
    assert document["nodes"] == ["a0", "a1", "a2", "a3", "a4", "b0"]
    (problem,) = document["problems"]
    assert problem["objects"] == ["Claim/one", "Claim/two"]
    assert problem["nodes"] == ["a0", "a1", "a2", "a3", "a4"]


def test_selected_nodes_alone(manifests: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check("-f", manifests, "--node", "b0") == 0
    assert capsys.readouterr().err == "no problems on 1 node\n"


def test_an_unknown_node_is_answered_with_the_known_ones(
    manifests: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check("-f", manifests, "--node", "b0", "--node", "b1") == 4
    printed = capsys.readouterr()
    assert printed.err.startswith("waggle check: there is no Node b1; the Nodes: a0, a1")
    assert printed.out == ""


def test_manifests_without_a_node_are_checked_for_one_without_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(yaml.safe_dump_all([claim("one", 1), claim("two", 2)]))
    assert check("-f", path) == 1
    assert "Claim/one, Claim/two" in capsys.readouterr().out


def test_that_manifests_have_no_node_is_no_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = configuration("x", {"bgp": {"routers": [router(neighbor())]}})
    path = tmp_path / "one.yaml"
    path.write_text(yaml.safe_dump(value))
    assert main(["check", "-f", str(path)]) == 0
    assert capsys.readouterr().err == (
        "waggle check: note: no Node of the manifests has these labels, 1 node assumed: no labels\n"
        "no problems on 1 node\n"
    )


RACKS = [claim("one", 1, labels={"rack": "a"}), claim("two", 2, labels={"zone": "z"})]


@pytest.mark.parametrize("nodes", [[], [node("b0", "b")]])
def test_objects_that_select_no_node_are_checked_with_all_that_they_could_meet(
    nodes: list[dict[str, object]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all([*nodes, *RACKS]))
    assert check("-f", path) == 1
    out, err = capsys.readouterr()
    assert out == (
        "Claim/one, Claim/two: spec.value: port: 1 and 2 (node with rack=a,zone=z, none yet)\n"
    )
    assert "assumed: " in err
    assert "rack=a,zone=z" in err
    check("-f", path, "-o", "json")
    document = json.loads(capsys.readouterr().out)
    meeting = {"name": "with rack=a,zone=z, none yet", "labels": {"rack": "a", "zone": "z"}}
    assert meeting in document["assumedNodes"]
    assert document["problems"][0]["nodes"] == [meeting["name"]]


def test_an_assumed_node_is_no_node_of_dialects_that_do_not_select_by_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = node("b0", "b") | {
        "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}
    }
    peer = {"name": "p", "peerASN": 65002, "peerAddress": "192.0.2.9"}
    cilium = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumBGPClusterConfig",
        "metadata": {"name": "all"},
        "spec": {"bgpInstances": [{"name": "i", "localASN": 65001, "peers": [peer]}]},
    }
    value = configuration("x", {"bgp": {"routers": [router(neighbor())]}})
    value["spec"]["nodeSelector"] = {"matchLabels": {"rack": "c"}}
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all([real, cilium, value]))
    assert main(["check", "-f", str(path)]) == 0
    assert capsys.readouterr().err == (
        "waggle check: note: no Node of the manifests has these labels, 1 node assumed: rack=c\n"
        "no problems on 2 nodes\n"
    )


def cluster_config(name: str, selector: object, peer_config: str = "pc") -> dict[str, object]:
    peer = {"name": "p", "peerASN": 65002, "peerAddress": "192.0.2.9"}
    peer |= {"peerConfigRef": {"name": peer_config}}
    instance = {"name": "i", "localASN": 65001, "peers": [peer]}
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumBGPClusterConfig",
        "metadata": {"name": name},
        "spec": {"bgpInstances": [instance], "nodeSelector": selector},
    }


PEER_CONFIG = {
    "apiVersion": "cilium.io/v2", "kind": "CiliumBGPPeerConfig", "metadata": {"name": "pc"}, "spec": {}
}  # fmt: skip
PEERING_POLICY = {
    "apiVersion": "cilium.io/v2alpha1",
    "kind": "CiliumBGPPeeringPolicy",
    "metadata": {"name": "v1"},
    "spec": {
        "nodeSelector": {"matchLabels": {"rack": "v1"}},
        "virtualRouters": [
            {"localASN": 65001, "neighbors": [{"peerAddress": "192.0.2.9/32", "peerASN": 65002}]}
        ],
    },
}


def test_objects_of_cilium_need_no_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "all.yaml"
    rack = {"matchLabels": {"rack": "a"}}
    for objects in (
        [cluster_config("c", None), PEER_CONFIG],
        [cluster_config("c", rack), PEER_CONFIG],
        [PEERING_POLICY],
    ):
        path.write_text(yaml.safe_dump_all(objects))
        status = main(["check", "-f", str(path)])
        assert (status, capsys.readouterr().out) == (0, "")


def test_each_cluster_config_is_checked_on_a_node_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "all.yaml"
    rack, gpu = {"matchLabels": {"rack": "a"}}, {"matchLabels": {"gpu": "yes"}}
    objects = [cluster_config("one", rack, "none"), cluster_config("two", gpu, "nothing")]
    path.write_text(yaml.safe_dump_all(objects))
    assert main(["check", "-f", str(path)]) == 1
    out, err = capsys.readouterr()
    assert [line.split(": ")[-1] for line in out.splitlines()] == [
        "there is no CiliumBGPPeerConfig 'none' (node assumed-1)",
        "there is no CiliumBGPPeerConfig 'nothing' (node assumed-2)",
    ]
    assert "3 nodes assumed: no labels, rack=a (assumed-1), gpu=yes (assumed-2)\n" in err


def test_no_node_is_assumed_beside_selected_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all([node("b0", "b"), *RACKS]))
    assert check("-f", path, "--node", "b0") == 0
    assert capsys.readouterr().err == "no problems on 1 node\n"


def test_objects_for_which_too_many_nodes_are_necessary_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "all.yaml"
    claims = [claim(f"c{i:03}", 1, labels={"host": str(i)}) for i in range(ASSUMED_NODES + 1)]
    path.write_text(yaml.safe_dump_all([node("b0", "b"), *claims]))
    assert check("-f", path) == 0
    err = capsys.readouterr().err
    assert "not checked, since they select neither a Node nor an assumed one: Claim/c100" in err
    assert f"no problems on {ASSUMED_NODES + 1} nodes" in err


def test_a_path_that_is_not_there_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("-f", "/no/such/path") == 2
    assert capsys.readouterr().err == (
        "waggle check: /no/such/path: there is no such file or directory\n"
    )


def test_accepted_routes_are_no_problem(  # they are installed in the kernel, by default
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    receiving = neighbor(toReceive={"allowed": {"mode": "all"}})
    path = tmp_path / "objects.yaml"
    objects = [node("n", "a"), configuration("tor", {"bgp": {"routers": [router(receiving)]}})]
    path.write_text(yaml.safe_dump_all(objects))
    assert main(["check", "-f", str(path)]) == 0
    assert "not installed" not in capsys.readouterr().out


def test_an_address_that_some_nodes_do_not_advertise_is_one_line_with_these(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = configuration_of_lab([179])
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"rack": "r1"}},
            "status": {"addresses": [{"type": "InternalIP", "address": address}]},
        }
        for name, address in (("a", "192.0.2.21"), ("b", "192.0.2.22"), ("c", "192.0.2.23"))
    ]
    cluster = [item for item in objects if item["kind"] != "Node"]
    peer = cluster[0]["spec"]["bgpInstances"][0]["peers"][0]
    peer["peerAddress"] = "198.51.100.1"
    service = service_of_lab("web", "198.51.100.1")
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all([*nodes, *cluster, service]))
    assert main(["check", "-f", str(path)]) == 1
    assert capsys.readouterr().out == (
        "Service/shop/web: status.loadBalancer.ingress: 198.51.100.1 is not advertised: it is the "
        "address of a peer\n"
    )


@pytest.mark.parametrize("format_", ["text", "table"])
def test_a_conflict_of_a_thousand_objects_is_one_line_that_people_can_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], format_: str
) -> None:
    objects = [node("a", "a"), *(claim(f"c{i:04}", i) for i in range(1000))]
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    assert check("-f", path, "-o", format_) == 1
    names = ", ".join(f"Claim/c{i:04}" for i in range(8))
    out = capsys.readouterr().out
    assert f"{names} and 992 more" in " ".join(out.split())
    assert format_ == "table" or len(out) <= 1024 + len("\n")
    assert check("-f", path, "-o", "json") == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert len(problem["objects"]) == 1000
