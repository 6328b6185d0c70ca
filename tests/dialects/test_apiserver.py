"""Agent and operator with a test dialect on a real API server, with the permissions of its kinds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cells.dialects.cell import agent_cell
from deploy import rbac
from tests.cmd.lab import established, routers
from tests.dialects.beacon.entry import DIALECT
from tests.dialects.beacon.kinds import BEACON
from tests.dialects.objects import NODE, beacon, node, service
from tests.support import plain_yaml
from tests.support.agent import Agent
from tests.support.daemon import Daemon
from tests.support.kubernetes.accounts import (
    access,
    define,
    grant,
    put,
    rules,
    rules_without_dialects,
    undefine,
)
from tests.support.kubernetes.server import KubeApiServer
from tests.support.wait import eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.program, pytest.mark.timeout(300)]

BEACONS = "/apis/test.waggle.dev/v1/beacons"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/waggle-operator"
NAMESPACE = "beacon-test"
SERVICE = f"/api/v1/namespaces/{NAMESPACE}/services/web"


@pytest.fixture
def server(apiserver: KubeApiServer) -> Iterator[KubeApiServer]:
    """Define Beacons, and put in a Node and a Service."""
    made = define(apiserver, [BEACON])
    put(apiserver, "/api/v1/nodes", node())
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    put(apiserver, "/api/v1/namespaces", namespace)
    web = service("web", "198.51.100.1", namespace=NAMESPACE)
    status = web.pop("status")
    put(apiserver, SERVICE.rpartition("/")[0], web)
    answer = apiserver.request("PATCH", f"{SERVICE}/status", {"status": status}, "merge-patch+json")
    assert answer.ok, answer.body
    yield apiserver
    undefine(apiserver, made)
    for path in (f"/api/v1/nodes/{NODE}", SERVICE, LEASE):
        apiserver.request("DELETE", path)


def account(server: KubeApiServer, part: str, path: Path) -> Path:
    """Make an account with what the chart grants a part for Beacons; return its kubeconfig."""
    name = f"beacon-{part}"
    cell = agent_cell(DIALECT)
    made = {
        "agent": (rbac.agent_rules, rbac.report_rules),
        "operator": (rbac.operator_rules,),
    }[part]
    of_dialect: list[dict[str, Any]] = plain_yaml.load("".join("".join(of(cell)) for of in made))
    grant(server, name, "Cluster", [*rules_without_dialects(part), *of_dialect])
    grant(server, name, "", rules(part, ""))
    return access(server, name, path)


def test_a_beacon_is_read_applied_and_reported(server: KubeApiServer, tmp_path: Path) -> None:
    with routers(tmp_path, 1) as (port,):
        own: dict[str, Any] = {"peerAddress": "127.0.0.2", "peerPort": port, "namespace": NAMESPACE}
        put(server, BEACONS, beacon(**own))
        put(server, BEACONS, beacon("lost", **own))
        switches = ("--enable-cell", "beacon", "--disable-cell", "cilium")
        operator = Daemon(
            "waggle-operator",
            [
                *(sys.executable, "-m", "tests.dialects.dialect_programs", "operator", *switches),
                *("--kubeconfig", account(server, "operator", tmp_path / "operator-access")),
                *("--lease-duration-seconds", "300", "--renew-deadline-seconds", "290"),
            ],
            log=tmp_path / "operator.log",
        )
        agent = Agent(
            None,
            tmp_path / "agent",
            node=NODE,
            arguments=switches,
            kubeconfig=account(server, "agent", tmp_path / "agent-access"),
            program=("tests.dialects.dialect_programs", "agent"),
        )
        operator.start()
        agent.start()
        try:
            agent.wait_ready()
            established(agent, 1)
            eventually(lambda: _check_advertised(agent))
            eventually(lambda: _check_status(server), context=operator.tail)
        finally:
            agent.stop()
            operator.stop()


def _check_advertised(agent: Agent) -> None:
    assert [route["prefix"] for route in agent.routes("advertised")] == ["198.51.100.1/32"]


def _check_status(server: KubeApiServer) -> None:
    """Check what the agent and the operator have written, each its part."""
    statuses = {
        o["metadata"]["name"]: o.get("status", {})
        for o in server.request("GET", BEACONS).body["items"]
    }
    conditions = {
        name: [(one["type"], one["status"]) for one in status.get("conditions", [])]
        for name, status in statuses.items()
    }
    assert conditions == {
        NODE: [("test.waggle.dev/NoNode", "False")],
        "lost": [("test.waggle.dev/NoNode", "True")],
    }
    assert {name: s.get("established") for name, s in statuses.items()} == {
        NODE: True,
        "lost": False,
    }
