"""``waggle explain`` against an agent with made-up answers, and offline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cells.api.model import ExplainItem, OriginItem
from tests.support.api import MadeUp, serving
from waggle.__main__ import main

WEB = OriginItem(kind="Service", namespace="shop", name="web")
ADVERTISED = ExplainItem(
    node="node-a",
    instance="i",
    peer="tor-1",
    object=WEB,
    address_type="LoadBalancerIP",
    family="ipv4-unicast",
    prefix="198.51.100.7/32",
    advertised=True,
    advertised_prefixes=["198.51.100.0/24"],
    reason="Advertised",
    rule=OriginItem(kind="CiliumBGPAdvertisement", name="vips"),
)
WITHHELD = ExplainItem(
    node="node-a",
    instance="i",
    peer="tor-2",
    object=WEB,
    address_type="LoadBalancerIP",
    family="ipv4-unicast",
    prefix="198.51.100.7/32",
    advertised=False,
    reason="NoLocalEndpoint",
    message="no ready \x1b[31m",
)
NO_SUCH_ADDRESS = ExplainItem(
    node="node-a",
    instance="i",
    peer="tor-2",
    object=WEB,
    address_type="ExternalIP",
    advertised=False,
    reason="NoAddress",
)
SCENARIO = "tests/scenarios/cilium/C10-C12-aggregation"


@pytest.fixture(name="path")
def agent(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp(explained=[ADVERTISED, WITHHELD, NO_SUCH_ADDRESS])):
        yield path


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_prefix_at_each_peer(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "198.51.100.7/32", "--socket", str(path)]) == 0
    assert lines(capsys.readouterr().out) == [
        "PEER PREFIX OBJECT TYPE ADVERTISED REASON WHY",
        "tor-1 198.51.100.7/32 Service/shop/web LoadBalancerIP as 198.51.100.0/24 Advertised -",
        r"tor-2 198.51.100.7/32 Service/shop/web LoadBalancerIP no NoLocalEndpoint no ready \x1b[31m",
    ]


def test_without_a_target_the_missing_routes_are_explained(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "--socket", str(path), "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["kind"], answer["apiVersion"]) == ("ExplainList", "cli.waggle/v1")
    (item,) = answer["items"]
    assert (item["peer"], item["advertised"], item["reason"]) == (
        "tor-2",
        False,
        "NoLocalEndpoint",
    )
    assert main(["explain", "--all", "--socket", str(path), "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["items"]) == 3


def test_an_unknown_target_is_exit_4_and_an_invalid_one_exit_1(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "192.0.2.9", "--socket", str(path)]) == 4
    assert capsys.readouterr() == ("", "waggle explain: nothing has 192.0.2.9\n")
    assert main(["explain", "not/a/target", "--socket", str(path)]) == 1
    assert capsys.readouterr().err == "waggle explain: not/a/target is no target\n"


def test_manifests_are_explained_without_an_agent(capsys: pytest.CaptureFixture[str]) -> None:
    offline = ["-f", SCENARIO, "--node", "test-node"]
    assert main(["explain", "10.10.10.1", *offline, "-o", "json"]) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert (item["peer"], item["advertisedPrefixes"], item["rule"]["name"]) == (
        "p",
        ["10.10.10.0/24"],
        "ad",
    )
    assert main(["explain", "192.0.2.99", *offline]) == 4
    assert "192.0.2.99" in capsys.readouterr().err
    assert main(["explain", "a/b/c/d", *offline]) == 2
    assert "a/b/c/d" in capsys.readouterr().err
    assert main(["explain", "--peer", "absent", *offline]) == 4
    assert main(["explain", "-f", "/nowhere", "--node", "n"]) == 2


def test_the_settings_of_the_agent_apply_offline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = "tests/scenarios/cilium/C09-no-endpoints-routable"
    offline = ["-f", directory, "--node", "test-node", "172.16.1.1", "-o", "json"]
    assert main(["explain", *offline]) == 0
    assert json.loads(capsys.readouterr().out)["items"][0]["advertised"]
    assert main(["explain", *offline, "--no-service-endpoints-routable=false"]) == 0
    assert json.loads(capsys.readouterr().out)["items"][0]["reason"] == "NoEndpoint"


def test_manifests_require_a_node(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "10.0.0.1", "-f", SCENARIO]) == 2
    assert "--node" in capsys.readouterr().err
