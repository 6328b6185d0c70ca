"""What a tenant with Services in one namespace can announce, with the roles and values of the chart.

An API server, the operator and an agent with their accounts, and a router: in the order in which an
administrator meets it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cells.api.client import AgentError, at_socket
from deploy.generate import MANIFESTS, NAMESPACE
from reconcilers.intent.service_addresses import published
from tests.cmd.lab import NODE, configuration, routers
from tests.deploy.rbac.cluster_with_accounts import (
    CILIUM,
    Cluster,
    Object,
    cilium,
    node,
    settings,
)
from tests.support.documents import documents
from tests.support.kinds import KINDS
from tests.support.kubernetes.accounts import put
from tests.support.kubernetes.server import KubeApiServer

pytestmark = [pytest.mark.apiserver, pytest.mark.program, pytest.mark.timeout(300)]

SHOP = "/api/v1/namespaces/shop"
KEY = "waggle.dev/service-addresses"


def fill(server: KubeApiServer, ports: list[int]) -> None:
    """Put in this node with a router, another node, and a namespace."""
    for obj in configuration(ports):
        kind = next(kind for kind in KINDS if kind.name == obj["kind"])
        status = obj.pop("status", None)
        if kind.name == "CiliumBGPAdvertisement":
            obj["spec"]["advertisements"][0]["service"]["addresses"] = ["ExternalIP"]
        put(server, kind.path(kind.versions[0]), obj)
        if status:
            set_status(server, f"{kind.path(kind.versions[0])}/{obj['metadata']['name']}", status)
    other: Object = {**node("n2", rack="r2"), "spec": {"podCIDRs": ["10.244.2.0/24"]}}
    put(server, "/api/v1/nodes", other)
    addresses = [{"type": "InternalIP", "address": "192.0.2.12"}]
    set_status(server, "/api/v1/nodes/n2", {"addresses": addresses})
    peer = {"name": "other", "peerASN": 65000, "peerAddress": "203.0.113.250"}
    spec = {
        "nodeSelector": {"matchLabels": {"rack": "r2"}},
        "bgpInstances": [{"name": "main", "localASN": 65001, "peers": [peer]}],
    }
    value = cilium("CiliumBGPClusterConfig", {"metadata": {"name": "other"}, "spec": spec})
    put(server, f"{CILIUM}/ciliumbgpclusterconfigs", value)
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})


def set_status(server: KubeApiServer, path: str, status: dict[str, Any]) -> None:
    answer = server.request("PATCH", f"{path}/status", {"status": status}, "merge-patch+json")
    assert answer.ok, answer.body


def test_a_tenant_announces_what_is_granted_and_nothing_that_something_else_has(
    cluster: Cluster,
) -> None:
    server = cluster.server
    objects = documents(MANIFESTS.read_text())
    api = server.request("GET", "/api/v1/namespaces/default/services/kubernetes").body
    cluster_ip = api["spec"]["clusterIP"]
    taken = {
        "192.0.2.11": "NodeAddress",
        "192.0.2.12": "NodeAddress",
        "10.244.2.7": "PodAddress",
        "203.0.113.250": "PeerAddress",
        cluster_ip: "ApiServer",
    }
    with routers(cluster.directory, 1) as ports:
        fill(server, ports)
        operator = cluster.run("operator", settings(objects, "operator"), 0)
        config_map = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{published.NAME}"
        cluster.soon(lambda: _published(server, config_map, "192.0.2.12"), operator)
        ports_of = [{"port": 80}]
        external = [*taken, "198.51.100.9", "203.0.113.9"]
        spec = {"externalIPs": external, "ports": ports_of}
        metadata = {"name": "web", "labels": {"expose": "true"}}
        web = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
        put(server, f"{SHOP}/services", web)
        socket = cluster.directory / "api"
        arguments = (f"--node-name={NODE}", f"--api-socket={socket}")
        agent = cluster.run("agent", settings(objects, "agent"), 0, *arguments)
        free = {"198.51.100.9": "Advertised", "203.0.113.9": "Advertised"}
        cluster.soon(lambda: _explained(socket, {**taken, **free}), agent)
        (state,) = at_socket(socket).get("/v1/status", {})["items"]
        assert any("--advertise-allow" in text for text in state["unrestricted"])

        _annotate(server, "198.51.100.0/26")
        granted = {**free, "203.0.113.9": "NotInNamespace"}
        cluster.soon(lambda: _explained(socket, {**taken, **granted}), agent)
        cluster.soon(lambda: _restricted_and_healthy(socket), agent)
        # No longer a list of prefixes: its last valid value stays.
        _annotate(server, "everything")
        cluster.soon(lambda: _problem(socket, "Namespace/shop"), agent)
        _explained(socket, {**taken, **granted})
        _annotate(server, None)
        cluster.soon(lambda: _explained(socket, {**taken, **free}), agent)
        cluster.stop()
    assert server.request("DELETE", f"{SHOP}/services/web").ok


def _restricted_and_healthy(socket: Path) -> None:
    (state,) = at_socket(socket).get("/v1/status", {})["items"]
    assert not state.get("unrestricted")
    assert state["health"] == "ok"


def _annotate(server: KubeApiServer, value: str | None) -> None:
    body = {"metadata": {"annotations": {KEY: value}}}
    assert server.request("PATCH", SHOP, body, "merge-patch+json").ok


def _published(server: KubeApiServer, path: str, address: str) -> None:
    answer = server.request("GET", path)
    assert answer.ok
    assert address in answer.body["data"]["nodes"]


def _explained(socket: Path, wanted: dict[str, str]) -> None:
    try:
        found = at_socket(socket).get("/v1/explain", {"target": "Service/shop/web"})["items"]
    except AgentError as error:
        raise AssertionError(error) from None
    reasons = {
        item["prefix"].partition("/")[0]: item["reason"] for item in found if item.get("prefix")
    }
    assert {address: reasons.get(address) for address in wanted} == wanted


def _problem(socket: Path, name: str) -> None:
    (state,) = at_socket(socket).get("/v1/status", {})["items"]
    assert [one for one in state["problems"] if one["objects"] == [name]]
