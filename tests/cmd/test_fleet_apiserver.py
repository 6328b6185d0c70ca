"""``waggle peers|routes|status|explain --all-nodes`` by pods/exec of a real API server.

Its kubelets are a stand-in that runs the commands here; two agents answer, the others are as people
meet them: silent, of an older version, or nonsense.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from cells.api.model import ExplainItem, PartItem, RouteItem, StatusItem
from resources.frrk8s.kinds import BGP_SESSION_STATE
from tests.cmd.test_peers import DOWN, UP
from tests.cmd.test_schema import check
from tests.support.api import MadeUp, serving
from tests.support.kubernetes.accounts import define, undefine
from tests.support.kubernetes.kubelet import Kubelet, Write, agent_pod, node, run_here
from tests.support.kubernetes.server import KubeApiServer
from tests.support.wait import eventually
from waggle.__main__ import main

pytestmark = [pytest.mark.apiserver, pytest.mark.program, pytest.mark.timeout(300)]

NAMESPACE = "fleet"
NODES = ("good", "down", "silent", "old", "nonsense", "pending")
TIME = "2026-11-23T12:00:00Z"


async def _stand_in(directory: Path, pod: str, command: list[str], write: Write) -> int:
    """Run a command in the container of a Pod."""
    match pod.removeprefix("agent-"):
        case "silent":
            await asyncio.sleep(3600)
        case "old":
            await write(2, b"waggle: argument COMMAND: invalid choice: 'api'\n")
            return 2
        case "nonsense":
            await write(1, b'HTTP/1.1 200 OK\r\n\r\n{"items": [{"name": 7}], "generatedAt": 3}')
            return 0
        case name:
            return await run_here(command, directory / name, write)
    return 0


@pytest.fixture(scope="module")
def cluster(
    apiserver: KubeApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, ...]]:
    """A cluster with agents; yields the flags that lead to it."""
    directory = tmp_path_factory.mktemp("fleet")
    good = MadeUp(
        peers=[UP],
        routes=[
            RouteItem(node="x", instance="i", peer="tor-1", family="ipv4-unicast", prefix=prefix)
            for prefix in ("198.51.100.8/32", "198.51.100.7/32")
        ],
        explained=[_explained("198.51.100.7/32", "Advertised")],
    )
    down = MadeUp(
        peers=[DOWN, UP],
        status=StatusItem(
            node="x",
            ready=True,
            health="degraded",
            degraded=[PartItem(path="kubernetes", message="away", since_time=UP["sinceTime"])],
            reporting="no",
            peers=[DOWN, UP],
        ),
        explained=[_explained("198.51.100.7/32", "SessionDown")],
    )
    kubelet = Kubelet(partial(_stand_in, directory), directory)
    with serving(directory / "good", good), serving(directory / "down", down), kubelet:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        assert apiserver.request("POST", "/api/v1/namespaces", namespace).ok
        for name in NODES:
            made = node(f"fleet-{name}", kubelet.port)
            assert apiserver.request("POST", "/api/v1/nodes", made).ok
            path = f"/api/v1/nodes/fleet-{name}/status"
            assert apiserver.request("PATCH", path, made, "merge-patch+json").ok
            pod = agent_pod(f"agent-{name}", f"fleet-{name}", NAMESPACE)
            pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
            assert apiserver.request("POST", pods, pod).ok
            phase = "Pending" if name == "pending" else "Running"
            status = {"status": {"phase": phase}}
            path = f"{pods}/agent-{name}/status"
            assert apiserver.request("PATCH", path, status, "merge-patch+json").ok
        yield ("--kubeconfig", str(apiserver.kubeconfig), "-n", NAMESPACE, "--timeout", "60")
        for name in NODES:
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/agent-{name}?gracePeriodSeconds=0"
            assert apiserver.request("DELETE", path).ok
            assert apiserver.request("DELETE", f"/api/v1/nodes/fleet-{name}").ok


def _explained(prefix: str, reason: str) -> ExplainItem:
    return ExplainItem(
        node="x",
        instance="i",
        peer="tor-1",
        family="ipv4-unicast",
        prefix=prefix,
        advertised=reason == "Advertised",
        reason=reason,
    )


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    status = main([*arguments, "-o", "json"])
    return status, check(capsys.readouterr().out)


def test_all_agents_are_asked_and_silent_ones_are_named(
    cluster: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    # Once the others have answered within this time, which a busy machine may not have for each.
    def answered() -> dict[str, Any]:
        status, answer = ask(capsys, "peers", "--all-nodes", *cluster, "--timeout", "4")
        assert status == 3, answer
        assert answer["summary"]["answered"] == 2, answer
        return answer

    answer = eventually(answered)
    assert [(i["node"], i["name"], i["state"]) for i in answer["items"]] == [
        ("fleet-down", "tor-2", "Active"),
        ("fleet-down", "tor-1", "Established"),
        ("fleet-good", "tor-1", "Established"),
    ]
    errors = {error["node"]: error for error in answer["errors"]}
    assert {node: error["code"] for node, error in errors.items()} == {
        "fleet-silent": "TimedOut",
        "fleet-old": "AgentTooOld",
        "fleet-nonsense": "BadAnswer",
        "fleet-pending": "AgentNotRunning",
    }
    assert "no complete answer within 4 s" in errors["fleet-silent"]["message"]
    assert "invalid choice: 'api'" in errors["fleet-old"]["message"]
    summary = answer["summary"]
    assert (summary["nodes"], summary["answered"]) == (6, 2)
    assert (summary["sessions"], summary["established"]) == (3, 2)
    assert list(summary["versions"].values()) == [2]


def test_one_node_is_asked_for_its_status_routes_and_explanation(
    cluster: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    one = ("--node", "fleet-good", *cluster)
    status, answer = ask(capsys, "routes", *one)
    assert status == 0
    routes = [(item["node"], item["prefix"]) for item in answer["items"]]
    assert routes == [("fleet-good", "198.51.100.7/32"), ("fleet-good", "198.51.100.8/32")]
    status, answer = ask(capsys, "status", "--node", "fleet-down", *one)
    assert status == 1
    assert [item["node"] for item in answer["items"]] == ["fleet-down", "fleet-good"]
    explain = ("explain", "198.51.100.7/32", "--node", "fleet-down", *cluster)
    assert [item["reason"] for item in ask(capsys, *explain)[1]["items"]] == ["SessionDown"]


def test_an_unknown_node_is_answered_with_the_nearest_names(
    cluster: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["peers", "--node", "fleet-goood", *cluster]) == 4
    assert "no agent has a Pod on a node fleet-goood; the nearest: fleet-good" in (
        capsys.readouterr().err
    )


def test_the_page_of_a_cluster_has_the_sessions_of_its_nodes(cluster: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "waggle", "ui", "--all-nodes", *cluster]
    nodes = ["--node", "fleet-good", "--node", "fleet-down", "--node", "fleet-old"]
    with subprocess.Popen([*command, *nodes], stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            sign_in = urlsplit(program.stdout.readline().strip())
            assert sign_in.hostname == "127.0.0.1"
            connection = http.client.HTTPConnection("127.0.0.1", sign_in.port or 0, timeout=60)
            connection.request("GET", f"{sign_in.path}?{sign_in.query}")
            answer = connection.getresponse()
            answer.read()
            cookie = {"Cookie": (answer.getheader("Set-Cookie") or "").partition(";")[0]}
            connection.request("GET", "/v1/status", headers=cookie)
            status = json.loads(connection.getresponse().read())
            connection.request("GET", "/v1/peers")
            refused = connection.getresponse()
            refused.read()
            connection.close()
        finally:
            # Not SIGINT, which a program in the background of a shell ignores.
            program.terminate()
    assert {item["node"]: len(item.get("peers", ())) for item in status["items"]} == {
        "fleet-down": 2,
        "fleet-good": 0,
    }
    assert [(error["node"], error["code"]) for error in status["errors"]] == [
        ("fleet-old", "AgentTooOld")
    ]
    assert refused.status == 401


def test_doctor_reads_the_cluster_and_names_the_faults(
    cluster: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    def check_faults() -> None:
        status, answer = ask(capsys, "doctor", "--all-nodes", *cluster, "--timeout", "4")
        assert status == 1
        results = {(i["check"], i.get("node", "")): i for i in answer["items"]}
        assert results["api-server", ""]["result"] != "error"
        assert results["rbac", ""]["result"] == "ok"
        assert "no complete answer" in results["agents", "fleet-silent"]["evidence"]
        assert results["port", "fleet-down"]["object"] == "tor-2"
        assert answer["summary"]["nodes"] == len(NODES)

    eventually(check_faults)
    away = ("doctor", "--all-nodes", "--kubeconfig", "/nonexistent/kubeconfig")
    status, answer = ask(capsys, *away)
    assert (status, answer["items"][0]["result"]) == (2, "error")


def test_sessions_come_from_the_status_objects_alone(
    apiserver: KubeApiServer, cluster: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    made = define(apiserver, [BGP_SESSION_STATE])
    path = f"{BGP_SESSION_STATE.path('v1beta1', NAMESPACE)}"
    for name, peer, state in (
        ("silent", "192.0.2.1", "Active"),
        ("good", "192.0.2.2", "Established"),
        ("gone", "192.0.2.3", "Established"),
    ):
        value = {
            "apiVersion": "frrk8s.metallb.io/v1beta1",
            "kind": "BGPSessionState",
            "metadata": {"name": name, "namespace": NAMESPACE},
        }
        assert apiserver.request("POST", path, value).ok
        given = {"status": {"node": f"fleet-{name}", "peer": peer, "bgpStatus": state}}
        patched = apiserver.request("PATCH", f"{path}/{name}/status", given, "merge-patch+json")
        assert patched.ok, patched.body
    status, answer = ask(capsys, "peers", "--from-statuses", *cluster)
    assert status == 0
    assert [(i["node"], i["address"], i["state"], i["source"]) for i in answer["items"]] == [
        ("fleet-silent", "192.0.2.1", "Active", f"BGPSessionState/{NAMESPACE}/silent"),
        ("fleet-gone", "192.0.2.3", "Established", f"BGPSessionState/{NAMESPACE}/gone"),
        ("fleet-good", "192.0.2.2", "Established", f"BGPSessionState/{NAMESPACE}/good"),
    ]
    status, answer = ask(capsys, "status", "--node", "fleet-silent", *cluster, "--timeout", "4")
    assert status == 3
    assert [(i["node"], i["health"]) for i in answer["items"]] == [("fleet-silent", "unknown")]
    # The runbook's stale statuses: of a Node that is gone, and of an agent that has another state.
    given = {"status": {"node": "fleet-down", "peer": UP["address"], "bgpStatus": "Active"}}
    assert apiserver.request("PATCH", f"{path}/good/status", given, "merge-patch+json").ok
    status, answer = ask(capsys, "doctor", "--node", "fleet-down", *cluster)
    assert status == 1
    assert {
        i["node"]: i["evidence"]
        for i in answer["items"]
        if i["check"] == "statuses" and i["result"] == "warning"
    } == {
        "fleet-gone": f"BGPSessionState/{NAMESPACE}/gone: there is no Node fleet-gone",
        "fleet-down": f"BGPSessionState/{NAMESPACE}/good has Active, the agent has Established",
    }
    undefine(apiserver, made)
