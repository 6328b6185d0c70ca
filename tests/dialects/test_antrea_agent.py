"""A running agent with BGPPolicies and a router: `waggle antrea` and the paths of Antrea's agent."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cells.api.client import at_socket
from tests.cmd.lab import established, routers
from tests.reconcilers.antrea.build import node, policy, service
from tests.support import plain_yaml
from tests.support.agent import Agent
from tests.support.ports import free_port
from tests.support.wait import eventually
from waggle.__main__ import main

pytestmark = pytest.mark.program


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Run a router at 127.0.0.2; return its port."""
    with routers(tmp_path, 1) as (port,):
        yield port


@pytest.fixture
def own_port() -> int:
    """Return the port on which the agent listens, at each address: no other test has it."""
    return free_port("::")


def objects(port: int, own_port: int) -> list[dict[str, Any]]:
    """Return a node, a policy whose router is the one of the test, and a Service."""
    peers = [{"address": "127.0.0.2", "asn": 65000, "port": port}]
    spec: dict[str, Any] = {"localASN": 65001, "listenPort": own_port, "peers": peers}
    return [
        node(),
        policy("edge", "ClusterIP", pod=True, **spec),
        service(clusterIPs=["10.98.14.20"]),
    ]


def run(it: Agent, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Run ``waggle antrea``; return its status and what it prints."""
    status = main(["antrea", *words, "--socket", str(it.socket)])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_views_of_an_agent(
    tmp_path: Path, port: int, own_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    http = free_port("127.0.0.1")
    flags = ["--enable-cell=antrea", "--disable-cell=cilium", f"--http-address=127.0.0.1:{http}"]
    it = Agent(
        None, tmp_path / "agent", node="edge-7", arguments=(*flags, "--mass-withdraw-hold=0")
    )
    it.write_objects("all.json", *objects(port, own_port))
    it.start()
    try:
        it.wait_ready()
        established(it, 1)
        with urllib.request.urlopen(f"http://127.0.0.1:{http}/metrics") as answer:
            metrics = answer.read().decode()
        up = [line for line in metrics.splitlines() if line.startswith("waggle_bgp_session_up{")]
        assert [("127.0.0.2" in line, line.endswith(" 1.0")) for line in up] == [(True, True)]
        expected = {
            "name": "edge",
            "routerID": "10.30.4.17",
            "localASN": 65001,
            "listenPort": own_port,
        }
        for words in (("policy",), ("bgppolicy",), ("get", "bgppolicy")):
            assert json.loads(run(it, capsys, *words, "-o", "json")[1])["items"] == [expected]
            assert json.loads(run(it, capsys, *words, "-o", "antctl-json")[1]) == expected
        peer = {"peer": f"127.0.0.2:{port}", "asn": 65000, "state": "Established"}
        assert json.loads(run(it, capsys, "bgppeers", "-o", "antctl-json")[1]) == [peer]
        assert run(it, capsys, "peers")[1].splitlines()[1].split() == [
            f"127.0.0.2:{port}",
            "65000",
            "Established",
            "<NONE>",
        ]
        of_services = ("get", "bgproutes", "-T", "ServiceClusterIP", "-o", "yaml")
        assert plain_yaml.load(run(it, capsys, *of_services)[1])["items"] == [
            {"route": "10.98.14.20/32", "type": "ServiceClusterIP", "k8sObjRef": "retail/shop"}
        ]
        assert run(it, capsys, "routes", "--ipv6-only")[:2] == (0, "\n")
        assert run(it, capsys, "bgppeers", "-o", "jsonpath={.items[0].peer}")[:2] == (
            0,
            peer["peer"],
        )
        assert run(it, capsys, "nodes")[0] == 2
        assert at_socket(it.socket).get_plain("/bgppeers?ipv4-only", {}) == (
            200,
            json.dumps([peer], separators=(",", ":")) + "\n",
        )
        assert at_socket(it.socket).get_plain("/bgproutes?ipv6-only", {}) == (200, "null\n")
        for query in ("ipv4-only=yes", "ipv4-only&ipv6-only"):
            refusal = at_socket(it.socket).get_plain(f"/bgproutes?{query}", {})
            assert refusal == (400, "invalid query\n")
        it.remove("all.json")
        text = "there is no effective bgp policy applied to the Node"
        eventually(lambda: _check(it, "/bgproutes", 404, text))
        assert run(it, capsys, "routes") == (4, "", f"waggle antrea: {text}\n")
    finally:
        it.stop()


def _check(it: Agent, path: str, status: int, text: str) -> None:
    assert at_socket(it.socket).get_plain(path, {}) == (status, f"{text}\n")


def test_while_the_dialect_is_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    it = Agent(None, tmp_path / "agent", node="edge-7")
    it.start()
    try:
        it.wait_ready()
        for path in ("/bgppolicy", "/bgppeers", "/bgproutes"):
            _check(it, path, 503, "bgp is not enabled")
        assert run(it, capsys, "policy") == (1, "", "waggle antrea: bgp is not enabled\n")
    finally:
        it.stop()
