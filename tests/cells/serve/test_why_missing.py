"""Why an agent has no peers, or not all of them: the problems of its configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import json

from tests.cells.serve.commands_of_agent import run
from tests.cmd.lab import NODE, configuration
from waggle.__main__ import main


def test_a_peer_that_is_left_out_is_named_with_its_problem_and_not_missing_selection(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = [item for item in configuration([1790]) if item["kind"] != "CiliumBGPPeerConfig"]
    answer = run(tmp_path, *objects, commands=[["peers"], ["status"], ["peers", "--peer", "tor-1"]])
    reason = "peer 'tor-1' is not configured: there is no CiliumBGPPeerConfig 'tor-1'"
    assert answer["items"] == []
    assert any(reason in text for text in answer["problems"])
    shown = capsys.readouterr()
    assert "no configuration selects this node" not in shown.err
    assert shown.err.count(reason) == 2
    assert "waggle peers: no peer is called tor-1\n" in shown.err
    (line,) = [line for line in shown.out.splitlines() if line.startswith("problem ")]
    assert reason in line


def test_a_peer_that_is_left_out_beside_others_is_named_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = [item for item in configuration([1790, 1791]) if item["metadata"]["name"] != "tor-2"]
    answer = run(tmp_path, *objects, commands=[["peers"]])
    assert [item["name"] for item in answer["items"]] == ["tor-1"]
    shown = capsys.readouterr()
    assert "tor-1" in shown.out
    assert "waggle peers: main/tor-2 is not configured: CiliumBGPNodeConfig/" in shown.err
    assert "there is no CiliumBGPPeerConfig 'tor-2'" in shown.err


def test_an_answer_lists_twenty_problems(tmp_path: Path) -> None:
    ports = list(range(1790, 1790 + 21))
    objects = [item for item in configuration(ports) if item["kind"] != "CiliumBGPPeerConfig"]
    problems = run(tmp_path, *objects, commands=[])["problems"]
    assert len(problems) == 21
    assert problems[20].startswith("and ")


def test_without_a_problem_no_configuration_selects_the_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = run(tmp_path, configuration([])[0], commands=[["peers"]])
    assert "problems" not in answer
    assert "no configuration selects this node" in capsys.readouterr().err


def test_an_invalid_object_is_a_reason_to_have_no_peers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node, cluster, *others = configuration([1790])
    cluster["spec"]["bgpInstances"][0]["localASN"] = -1
    run(tmp_path, node, cluster, *others, commands=[["peers"]])
    shown = capsys.readouterr().err
    assert "no peers, for the problems of the configuration:\n" in shown
    assert "CiliumBGPClusterConfig/rack: spec.bgpInstances[0].localASN" in shown


def test_offline_the_problem_is_shown_in_place_of_the_missing_selection(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = [item for item in configuration([1790]) if item["kind"] != "CiliumBGPPeerConfig"]
    file = tmp_path / "all.json"
    file.write_bytes(json.encode({"apiVersion": "v1", "kind": "List", "items": objects}))
    assert main(["render", "-f", str(file), "--node", NODE, "-o", "table"]) == 0
    shown = capsys.readouterr().err
    assert "there is no CiliumBGPPeerConfig 'tor-1'" in shown
    assert shown.endswith(f"No peers for node {NODE}: for the reasons above.\n")
