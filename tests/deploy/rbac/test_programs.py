"""Both programs need all rules of their roles, and no others: compared verb by verb."""

from __future__ import annotations

from functools import partial

import pytest

from cells.dialects.cell import DialectCell
from cells.operator.service_events import CONTROLLER
from deploy.generate import MANIFESTS
from reconcilers.dialect import WrittenObjects
from resources.kubernetes import versioned_kinds
from tests.cmd.lab import NODE, configuration, routers
from tests.deploy.rbac.cluster_with_accounts import (
    CILIUM,
    EVENTS,
    QUICK_COUNTS,
    QUICK_SERVICES,
    Cluster,
    Object,
    cilium,
    granted,
    node,
    owned_by,
    post,
    settings,
)
from tests.reconcilers.build import peer_config
from tests.support.documents import documents
from tests.support.kinds import KINDS
from tests.support.kubernetes.accounts import CRDS, put
from tests.support.kubernetes.cilium import put_cilium
from tests.support.kubernetes.owners import owned_objects
from tests.support.kubernetes.server import KubeApiServer
from waggle_agent.__main__ import CELLS as AGENT_CELLS

LEFT = [
    kind.kind
    for cell in AGENT_CELLS
    if isinstance(cell, DialectCell) and not cell.on_by_default
    for written in cell.dialect.each(WrittenObjects)
    for kind in written.kinds
]
"""The kinds of which agents write objects, of dialects that are off by default."""

SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"

pytestmark = [pytest.mark.apiserver, pytest.mark.program, pytest.mark.timeout(300)]


def test_both_programs_need_all_rules_of_their_roles(cluster: Cluster) -> None:
    server = cluster.server
    cluster.anywhere |= {kind.plural for kind in LEFT}
    objects = documents(MANIFESTS.read_text())
    with routers(cluster.directory, 1) as ports:
        _fill(server, configuration(ports))
        owner = server.request("GET", f"{CILIUM}/ciliumbgpclusterconfigs/rack").body
        reference = {**owned_by("rack", owner["metadata"]["uid"]), "kind": owner["kind"]}
        reference["apiVersion"] = owner["apiVersion"]
        stray = {"bgpInstances": [{"name": "stray", "localASN": 65099}]}
        post(server, "CiliumBGPNodeConfig", "n2", stray, reference)
        _store_as_before(server)
        _leave_objects(server)

        configured = settings(objects, "operator")
        operator = cluster.run("operator", configured, 0, code=QUICK_SERVICES)
        # Then all Events of the session are of the NodeConfig, from the first one on.
        cluster.soon(lambda: _check_node_configs(server, NODE, "n2"), operator)
        socket = f"--api-socket={cluster.directory / 'api'}"
        arguments = (f"--node-name={NODE}", socket)
        configured = settings(objects, "agent")
        agent = cluster.run("agent", configured, 0, *arguments, code=QUICK_COUNTS)
        grants = {part: granted(objects, part) for part in ("agent", "operator")}

        # A session that comes up is an Event; the same again goes on in it.
        cluster.soon(lambda: _check_state(server, "established"), agent)
        cluster.soon(lambda: _check_event(server, "SessionEstablished"), agent)
        (peer,) = [o for o in configuration(ports) if o["kind"] == "CiliumBGPPeerConfig"]
        peer["spec"]["timers"]["holdTimeSeconds"] = 30
        put(server, f"{CILIUM}/ciliumbgppeerconfigs", peer)
        put(server, "/api/v1/nodes", node("n2", rack="r2"))
        cluster.soon(lambda: _check_node_configs(server, NODE), operator)
        # A Service without an endpoint on its node is an Event; without one again, the same Event.
        _put_service(server)
        for node_name, reason in (("n2", "NotAdvertised"), (NODE, "Advertised"), ("n2", "")):
            _put_endpoint(server, node_name)
            if reason:
                checked = partial(_check_event, server, reason, CONTROLLER)
                cluster.soon(checked, operator)
        cluster.until_used("operator", grants["operator"], operator)
        cluster.until_used("agent", grants["agent"], agent)
        # The Deployment of the manifests owns what the operator keeps beside it.
        kept = {("Lease", "Deployment"), ("ConfigMap", "Deployment")}
        kept |= {("CiliumBGPNodeConfig", "CiliumBGPClusterConfig")}
        cluster.soon(lambda: _check_owners(server, kept), operator)
        cluster.stop()
        for path in (f"{SERVICES}/web", f"{SLICES}/web-1"):
            server.request("DELETE", path)
        assert not _left(server), "an operator deletes what a dialect that is off has written"
    for part in ("agent", "operator"):
        assert cluster.used(part) == grants[part]


def _check_owners(server: KubeApiServer, wanted: set[tuple[str, str]]) -> None:
    owned = owned_objects(server)
    assert owned >= wanted, owned


def _fill(server: KubeApiServer, objects: list[Object]) -> None:
    """Put in two nodes, one of them with a router, and an object of each kind of v2."""
    for obj in objects:
        kind = next(kind for kind in KINDS if kind.name == obj["kind"])
        status = obj.pop("status", None)
        put(server, kind.path(kind.versions[0]), obj)
        if status:
            path = f"{kind.path(kind.versions[0])}/{obj['metadata']['name']}/status"
            answer = server.request("PATCH", path, {"status": status}, "merge-patch+json")
            assert answer.ok, answer.body
    put(server, "/api/v1/nodes", node("n2", rack="r1"))
    peer = peer_config("with-password", authSecretRef="nothing")
    put(server, f"{CILIUM}/ciliumbgppeerconfigs", cilium("CiliumBGPPeerConfig", peer))
    put_cilium(server)
    override = {"metadata": {"name": NODE}, "spec": {"bgpInstances": [{"name": "main"}]}}
    path = f"{CILIUM}/ciliumbgpnodeconfigoverrides"
    put(server, path, cilium("CiliumBGPNodeConfigOverride", override))


def _put_service(server: KubeApiServer) -> None:
    """Put in a Service with traffic policy Local that the Advertisement selects."""
    metadata = {"name": "web", "labels": {"expose": "true"}}
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}], "externalTrafficPolicy": "Local"}
    value = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    put(server, SERVICES, value)
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "198.18.30.5"}]}}}
    answer = server.request("PATCH", f"{SERVICES}/web/status", status, "merge-patch+json")
    assert answer.ok, answer.body


def _put_endpoint(server: KubeApiServer, name: str) -> None:
    """Put the endpoint of the Service on a node."""
    value = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.0.1"], "nodeName": name, "conditions": {"ready": True}}],
        "ports": [],
    }
    put(server, SLICES, value)


def _leave_objects(server: KubeApiServer) -> None:
    """Put in what an agent wrote for dialects that are off now."""
    for kind in LEFT:
        api, namespace = kind.api_versions[0], "default" if kind.namespaced else ""
        metadata = {"name": "left", "labels": {"node": NODE}}
        value = {"apiVersion": api, "kind": kind.name, "metadata": metadata}
        path = f"{kind.path(kind.versions[0], namespace)}?fieldManager=waggle-agent"
        answer = server.request("POST", path, value)
        assert answer.ok, answer.body


def _left(server: KubeApiServer) -> list[str]:
    paths = (kind.path(kind.versions[0]) for kind in LEFT)
    return [path for path in paths if server.request("GET", path).body["items"]]


def _store_as_before(server: KubeApiServer) -> None:
    """Have the definitions of v2 name the old version."""
    status = {"status": {"storedVersions": ["v2alpha1", "v2"]}}
    for kind in versioned_kinds(KINDS):
        path = f"{CRDS}/{kind.plural}.{kind.group}/status"
        assert server.request("PATCH", path, status, "merge-patch+json").ok


def _check_state(server: KubeApiServer, state: str) -> None:
    answer = server.request("GET", f"{CILIUM}/ciliumbgpnodeconfigs/{NODE}")
    assert answer.ok
    instances = answer.body.get("status", {}).get("bgpInstances", [])
    peers = [peer for instance in instances for peer in instance.get("peers", [])]
    assert [peer.get("peeringState") for peer in peers] == [state]


def _check_event(server: KubeApiServer, reason: str, controller: str = "waggle.dev/agent") -> None:
    items = server.request("GET", EVENTS).body["items"]
    assert reason in {i["reason"] for i in items if i["reportingController"] == controller}


def _check_node_configs(server: KubeApiServer, *names: str) -> None:
    items = server.request("GET", f"{CILIUM}/ciliumbgpnodeconfigs").body["items"]
    assert {item["metadata"]["name"] for item in items} == set(names)
