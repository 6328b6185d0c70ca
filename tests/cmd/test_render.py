"""The tables of ``waggle render``."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.reconcilers.build import cluster_config
from waggle import output
from waggle.__main__ import main
from waggle.commands import render
from waggle.dialects import Dialects
from waggle.intent_flags import add_intent_flags, offline_settings


def peer(**fields: object) -> dict[str, Any]:
    return {
        "name": "p",
        "address": None,
        "interface": None,
        "peerASN": 65010,
        "peerType": None,
        "peerPort": 179,
        "families": ["ipv4-unicast"],
        "localAddress": None,
        "holdTime": 90,
        "keepaliveTime": 30,
        "connectRetryTime": 120,
        "password": False,
        "gracefulRestart": None,
        "advertise": [],
        "accept": [],
        **fields,
    }


@pytest.mark.parametrize(
    ("fields", "address", "asn"),
    [
        ({"address": "192.0.2.1"}, "192.0.2.1:179", "65010"),
        ({"address": "2001:db8::1"}, "[2001:db8::1]:179", "65010"),
        ({"interface": "eth1"}, "eth1:179", "65010"),
        ({"interface": "eth1", "peerASN": 0}, "eth1:179", "any"),
        ({"interface": "eth1", "peerASN": 0, "peerType": "external"}, "eth1:179", "external"),
    ],
)
def test_the_table_has_every_peer_also_one_without_an_address(
    fields: dict[str, object], address: str, asn: str
) -> None:
    instance = {"name": "i", "localASN": 65001, "routerID": "192.0.2.9"}
    cells = output.row(render.PEERS, render.PeerRow(instance, peer(**fields)))
    assert cells[:4] == ["i/p", address, "65001", asn]


def frr_configuration(name: str, port: int) -> dict[str, Any]:
    neighbor = {"address": "203.0.113.9", "asn": 65002, "port": port}
    return {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {"name": name, "namespace": "frr-k8s-system"},
        "spec": {"bgp": {"routers": [{"asn": 65001, "neighbors": [neighbor]}]}},
    }


def test_a_conflict_that_is_also_a_condition_of_each_object_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    items = [node, frr_configuration("x", 1179), frr_configuration("y", 179)]
    manifest = tmp_path / "all.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert main(["render", "-f", str(manifest), "--node", "n1", "-o", "table"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("!")]
    assert len(lines) == 1
    assert "neighbors[0].port" in lines[0]
    assert lines[0].endswith(
        "1179 in FRRConfiguration/frr-k8s-system/x; 179 in FRRConfiguration/frr-k8s-system/y"
    )


def test_the_name_of_an_object_is_escaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "a\x1b[31mred\u202e\nline"
    item = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "x"}}
    (tmp_path / "all.json").write_text(json.dumps(item))
    main(["render", "-f", str(tmp_path), "--node", "n", "-o", "table"])
    printed = capsys.readouterr()
    assert "Service/x/a\\x1b[31mred\\u202e\\x0aline" in printed.err
    assert (printed.out + printed.err).replace("\n", "").isprintable()


def test_that_no_node_is_selected_is_a_note_and_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    other = frr_configuration("other", 179)
    other["spec"]["nodeSelector"] = {"matchLabels": {"rack": "9"}}
    foreign = frr_configuration("foreign", 179)
    foreign["metadata"]["namespace"] = "default"
    items = [node, frr_configuration("x", 179), other, foreign]
    manifest = tmp_path / "all.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert main(["render", "-f", str(manifest), "--node", "n1", "-o", "table"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        (
            "! FRRConfiguration/default/foreign: only FRRConfigurations in namespace frr-k8s-system "
            "are used"
        ),
        "note: FRRConfiguration/frr-k8s-system/other: no node has the labels of the node selector",
    ]


def test_a_condition_that_is_true_while_all_is_well_is_no_complaint(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["render", "-f", "examples/antrea", "--node", "node-1", "-o"]
    assert main([*arguments, "json"]) == 0
    conditions = json.loads(capsys.readouterr().out)["conditions"]
    effective = [one for one in conditions if one["type"] == "Effective"]
    assert [(one["kind"], one["status"]) for one in effective] == [("BGPPolicy", "True")]
    assert main([*arguments, "table"]) == 0
    assert "BGPPolicy" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["render", "explain"])
def test_a_node_missing_in_the_manifests_is_an_error_that_names_the_nodes(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "-f", "examples/quickstart", "--node", "node-2"]) == 4
    line = capsys.readouterr().err
    sentence = "there is no Node node-2; the Node: node-1"
    assert line == f"waggle {command}: {sentence}\n"


@pytest.mark.parametrize("command", [["render", "--node", "n"], ["check"]])
@pytest.mark.parametrize("what", ["loop", "pipe", "nothing"])
def test_a_path_that_cannot_be_read_is_exit_2(
    what: str, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yaml"
    reason = {
        "loop": "cannot be read: Too many levels of symbolic links",
        "pipe": "is not a regular file",
        "nothing": "there is no such file or directory",
    }[what]
    if what == "loop":
        path.symlink_to(path)
    elif what == "pipe":
        os.mkfifo(path)
    assert main([*command, "-f", str(path), "-o", "table"]) == 2
    assert capsys.readouterr() == ("", f"waggle {command[0]}: {path}: {reason}\n")
    if what != "nothing":
        # In a directory it is a problem beside others.
        assert main(["check", "-f", str(tmp_path)]) == 1
        assert reason in capsys.readouterr().out


def test_a_directory_without_the_node_is_exit_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", "-f", str(tmp_path), "--node", "n"]) == 4
    assert "there is no Node n: there are no manifests" in capsys.readouterr().err


def test_a_node_needs_no_node_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = tmp_path / "one.json"
    manifest.write_text(json.dumps(frr_configuration("x", 179)))
    assert main(["render", "-f", str(manifest), "--node", "n1", "-o", "table"]) == 0
    assert "waggle render: " not in capsys.readouterr().err
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}}
    items = [node, frr_configuration("x", 179)]
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert main(["render", "-f", str(manifest), "--node", "n1", "-o", "table"]) == 0
    assert "waggle render: there is no Node n1; the Node: n2" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags", [["--drain-taint", "a,b"], ["--drain-taint", "a", "--drain-taint", "b"]]
)
def test_a_list_is_given_by_commas_or_repeated(flags: list[str]) -> None:
    parser = argparse.ArgumentParser()
    add_intent_flags(parser, Dialects(()))
    settings = offline_settings(
        parser.parse_args(flags, argparse.Namespace(node="n1")), Dialects(())
    )
    assert settings.intent.drain_taints == ("a", "b")


@pytest.mark.parametrize(
    ("flags", "router_id"),
    [
        ([], "192.0.2.7"),
        (["--node-address", "198.51.100.0/24"], "198.51.100.7"),
        (["--node-address", "203.0.113.9"], "203.0.113.9"),
        (["--node-address", "10.0.0.0/8"], "192.0.2.7"),
    ],
)
def test_the_router_id_is_the_address_of_the_node_that_a_flag_prefers(
    flags: list[str], router_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    addresses = [{"type": "InternalIP", "address": a} for a in ("192.0.2.7", "198.51.100.7")]
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"addresses": addresses},
    }
    config = {"apiVersion": "cilium.io/v2", "kind": "CiliumBGPClusterConfig", **cluster_config()}
    objects = {"apiVersion": "v1", "kind": "List", "items": [node, config]}
    path = tmp_path / "objects.json"
    path.write_text(json.dumps(objects))
    assert main(["render", "-f", str(path), "--node", "n1", *flags]) == 0
    (instance,) = json.loads(capsys.readouterr().out)["instances"]
    assert instance["routerID"] == router_id


RECEIVING = {
    "apiVersion": "frrk8s.metallb.io/v1beta1",
    "kind": "FRRConfiguration",
    "metadata": {"name": "spine", "namespace": "frr-k8s-system"},
    "spec": {
        "bgp": {
            "routers": [
                {
                    "asn": 64710,
                    "neighbors": [
                        {
                            "address": "10.88.0.1",
                            "asn": 64701,
                            "toReceive": {"allowed": {"mode": "all"}},
                        }
                    ],
                }
            ]
        }
    },
}
NETWORK = {
    "apiVersion": "waggle.dev/v1alpha1",
    "kind": "NodeNetwork",
    "metadata": {"name": "n1"},
    "spec": {"devices": [{"name": "eth0", "addresses": ["10.88.0.11/24"]}]},
}


class TestReceived:
    """The routes of ``--received``, and what would stand in the kernel."""

    @pytest.fixture
    def arguments(self, tmp_path: Path) -> list[str]:
        manifest = tmp_path / "m.json"
        items = [RECEIVING, NETWORK]
        manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        received = tmp_path / "received.json"
        routes = [{"prefix": "203.0.113.0/24"}, {"prefix": "127.0.0.0/8"}]
        received.write_text(json.dumps({"10.88.0.1": routes}))
        return ["render", "-f", str(manifest), "--node", "n1", "--received", str(received)]

    def test_the_document_has_the_kernels_routes_and_the_others_with_a_reason(
        self, arguments: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([*arguments, "--fib-metric", "55"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["kernel"] == [
            {
                "table": 254,
                "prefix": "203.0.113.0/24",
                "type": "unicast",
                "protocol": 186,
                "metric": 55,
                "nexthops": [{"via": "10.88.0.1", "dev": "eth0", "weight": 1}],
            }
        ]
        assert document["notInstalled"] == [
            {
                "prefix": "127.0.0.0/8",
                "peer": "10.88.0.1",
                "reason": "Martian",
                "message": "127.0.0.0/8 is loopback",
            }
        ]

    def test_without_the_file_the_document_has_neither(
        self, arguments: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([*arguments[:-2], "--fib"]) == 0
        assert not {"kernel", "notInstalled"} & json.loads(capsys.readouterr().out).keys()

    @pytest.mark.parametrize(
        ("flags", "installed"), [([], True), (["--fib"], True), (["--fib=false"], False)]
    )
    def test_accepted_routes_are_a_problem_unless_they_are_installed(
        self,
        flags: list[str],
        arguments: list[str],
        capsys: pytest.CaptureFixture[str],
        *,
        installed: bool,
    ) -> None:
        assert main([*arguments, *flags]) == 0
        document = json.loads(capsys.readouterr().out)
        problems = [problem["message"] for problem in document["problems"]]
        assert any("not installed in the kernel" in text for text in problems) is not installed

    def test_switched_off_nothing_is_installed(
        self, arguments: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([*arguments, "--fib=false"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert not document["kernel"]
        assert [row["reason"] for row in document["notInstalled"]] == ["Off", "Martian"]

    def test_the_tables_have_both(
        self, arguments: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([*arguments, "-o", "table"]) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert ["TABLE", "PREFIX", "NEXT-HOPS"] in lines
        assert ["254", "203.0.113.0/24", "10.88.0.1%eth0"] in lines
        message = ["127.0.0.0/8", "is", "loopback"]
        assert ["127.0.0.0/8", "10.88.0.1", "Martian", *message] in lines

    @pytest.mark.parametrize(
        ("content", "error"),
        [
            (None, "No such file or directory"),
            ("{", "Input data was truncated"),
            ('{"10.88.0.2": []}', "the node has no peer 10.88.0.2"),
        ],
    )
    def test_a_file_that_cannot_be_used_is_exit_2(
        self,
        content: str | None,
        error: str,
        arguments: list[str],
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        path = Path(arguments[-1])
        path.unlink()
        if content is not None:
            path.write_text(content)
        assert main([*arguments, "-o", "table"]) == 2
        captured = capsys.readouterr()
        assert not captured.out
        assert captured.err.startswith(f"waggle render: {path}: {error}")

    def test_a_value_that_no_kernel_takes_is_exit_2(
        self, arguments: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([*arguments, "--fib-table=255"]) == 2
        assert "--fib-table: 255 is the kernel's table" in capsys.readouterr().err
