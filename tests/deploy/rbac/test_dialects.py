"""The rules that the chart adds with dialects that are on, and the rules of a dialect that is off."""

from __future__ import annotations

import contextlib

import pytest

from cells.api.client import at_socket
from deploy.generate import MANIFESTS, NAMESPACE
from resources.label_selectors import label_value
from tests.cmd.lab import NODE
from tests.deploy.rbac.cluster_with_accounts import (
    CILIUM,
    CLUSTER_WIDE,
    Cluster,
    Grant,
    Object,
    check_denied,
    cilium,
    granted,
    node,
    settings,
)
from tests.reconcilers.metallb.objects import advertisement, peer, pool
from tests.reconcilers.metallb.test_node_objects import service as load_balancer
from tests.support.documents import documents
from tests.support.helm import Helm
from tests.support.kubernetes.accounts import apply, put
from tests.support.kubernetes.owners import owned_objects
from tests.support.kubernetes.server import Answer, KubeApiServer

pytestmark = [pytest.mark.apiserver, pytest.mark.program, pytest.mark.timeout(300)]


@pytest.mark.helm
def test_an_agent_counts_the_objects_of_a_dialect_that_is_off_with_what_the_chart_grants(
    cluster: Cluster, helm: Helm
) -> None:
    server = cluster.server
    values = {"agent": {"cells": {"cilium": {"enabled": False}}}}
    objects = helm.template(values)
    apply(server, objects)
    put(server, "/api/v1/nodes", node(NODE))
    for name in ("a", "b"):
        spec = {"bgpInstances": [{"name": "main", "localASN": 65001}]}
        value = cilium("CiliumBGPClusterConfig", {"metadata": {"name": name}, "spec": spec})
        put(server, f"{CILIUM}/ciliumbgpclusterconfigs", value)
    socket = cluster.directory / "api"
    arguments = (f"--node-name={NODE}", f"--api-socket={socket}")
    agent = cluster.run("agent", settings(objects, "agent"), 0, *arguments)
    counting = {grant for grant in granted(objects, "agent") if grant[1] == "cilium.io"}
    assert {verb for verb, *_ in counting} == {"list"}
    cluster.until_used("agent", counting, agent)

    def shown() -> None:
        notes = at_socket(socket).get("/v1/peers", {}).get("notes", [])
        assert len(notes) == 1
        assert notes[0].startswith("not read: 2 CiliumBGPClusterConfig (Cilium BGP is off; ")

    cluster.soon(shown, agent)
    assert not {grant for grant in cluster.used("agent") if grant[1] == "cilium.io"} - counting


WRITTEN = {
    ("frrk8s.metallb.io", "frrnodestates", ""),
    ("frrk8s.metallb.io", "bgpsessionstates", "frr-k8s-system"),
    ("metallb.io", "configurationstates", "metallb-system"),
    ("metallb.io", "servicebgpstatuses", "metallb-system"),
}
"""Group, resource and namespace of the objects that agents write about their nodes."""
NODE_OBJECTS = ("FRRNodeState", "BGPSessionState", "ConfigurationState", "ServiceBGPStatus")
"""Their kinds."""


@pytest.mark.helm
def test_an_agent_writes_the_objects_of_its_node_with_what_the_chart_grants(
    cluster: Cluster, helm: Helm
) -> None:
    server = cluster.server
    on = {"enabled": True}
    values: Object = {"cells": {"cilium": {"enabled": False}, "frrk8s": on, "metallb": on}}
    values["agent"] = {"cells": {"frrk8s": {"alwaysBlock": ["auto"]}}}
    objects = helm.template(values)
    with contextlib.ExitStack() as after:
        for namespace in ("frr-k8s-system", "metallb-system"):
            metadata = {"name": namespace}
            value = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            put(server, "/api/v1/namespaces", value)
        apply(server, objects)
        others = {obj["metadata"]["name"] for obj in documents(MANIFESTS.read_text())}
        for obj in objects:
            if obj["kind"] in CLUSTER_WIDE and obj["metadata"]["name"] not in others:
                path = f"{CLUSTER_WIDE[obj['kind']]}/{obj['metadata']['name']}"
                after.callback(server.request, "DELETE", path)
        put(server, "/api/v1/nodes", node(NODE))
        for path in _put_service(server):
            after.callback(server.request, "DELETE", path)

        def grants(part: str) -> set[Grant]:
            return {grant for grant in granted(objects, part) if _what(grant) in WRITTEN}

        socket = f"--api-socket={cluster.directory / 'api'}"
        arguments = (f"--node-name={NODE}", socket)
        agent = cluster.run("agent", settings(objects, "agent"), 0, *arguments)
        cluster.soon(lambda: _check_written(server), agent)
        # Rights in the agent's own namespace belong to its Pod, of which there is none here.
        assert owned_objects(server) >= {(kind, "Node") for kind in NODE_OBJECTS}
        optional = {grant for grant in granted(objects, "agent") if grant[2] == "servicecidrs"}
        assert {verb for verb, *_ in optional} == {"list", "watch"}
        cluster.until_used("agent", optional, agent)
        operator = cluster.run("operator", settings(objects, "operator"), 0)
        lists = {grant for grant in grants("operator") if grant[0] == "list"}
        cluster.until_used("operator", lists, operator)
        assert {verb for verb, *_ in grants("operator")} == {"list", "delete"}
        cluster.stop()

        # Another owner is a patch of the objects; switched off, they are deleted.
        server.request("DELETE", f"/api/v1/nodes/{NODE}")
        put(server, "/api/v1/nodes", node(NODE))
        agent = cluster.run("agent", settings(objects, "agent"), 0, *arguments)
        patches = {grant for grant in grants("agent") if grant[0] == "patch"}
        cluster.until_used("agent", patches, agent)
        cluster.stop()
        used = cluster.used("agent")
        other = server.token("waggle-agent", NAMESPACE, node="n1")
        for path in _written(server):
            check_denied(server.request("DELETE", path, token=other), "of its own node only")
        _check_foreign(server)
        _check_long_name(server)
        cluster.since = server.audited
        off = (*arguments, "--status-report=false")
        agent = cluster.run("agent", settings(objects, "agent"), 0, *off)
        cluster.until_used("agent", grants("agent") - used, agent)
        assert len(grants("agent")) == len(WRITTEN) * 5


def _check_foreign(server: KubeApiServer) -> None:
    """An agent writes neither an object of another node's name, nor finalizers."""
    token = server.token("waggle-agent", NAMESPACE, node="n1")
    namespace = "/apis/metallb.io/v1beta1/namespaces/metallb-system"

    def create(kind: str, label: str, **metadata: object) -> Answer:
        value = {"apiVersion": "metallb.io/v1beta1", "kind": kind}
        of_node = {"labels": {label: "n1"}, **metadata}
        path = f"{namespace}/{kind.lower()}s".replace("statuss", "statuses")
        return server.request("POST", path, {**value, "metadata": of_node}, token=token)

    state, of_service = "metallb.io/node-name", "metallb.io/node"
    for name in ("speaker-n2", "n1", "speaker-n1x"):
        answer = create("ConfigurationState", state, name=name)
        check_denied(answer, "the agent of node n1 may write objects of its own node only")
    check_denied(create("ServiceBGPStatus", of_service, name="web"), "of its own node only")
    forever = {"finalizers": ["example.com/forever"]}
    denied = create("ConfigurationState", state, name="speaker-n1", **forever)
    check_denied(denied, "neither add nor remove finalizers")
    assert create("ConfigurationState", state, name="speaker-n1").ok
    path = f"{namespace}/configurationstates/speaker-n1"

    def patch(finalizers: list[str], **by: str) -> Answer:
        body = {"metadata": {"finalizers": finalizers}}
        return server.request("PATCH", path, body, "merge-patch+json", **by)

    check_denied(patch(forever["finalizers"], token=token), "neither add nor remove finalizers")
    assert patch(["example.com/of-a-person"]).ok
    check_denied(patch([], token=token), "neither add nor remove finalizers")
    assert patch([]).ok
    assert server.request("DELETE", path, token=token).ok


def _check_long_name(server: KubeApiServer) -> None:
    """The label of an object cannot have the whole name of a node that is longer than a label."""
    name = f"{'worker' * 12}.example.com"
    put(server, "/api/v1/nodes", node(name))
    token = server.token("waggle-agent", NAMESPACE, node=name)
    path = "/apis/frrk8s.metallb.io/v1beta1/namespaces/frr-k8s-system/bgpsessionstates"

    def created(label: str) -> Answer:
        metadata = {"generateName": f"{name}-", "labels": {"frrk8s.metallb.io/node": label}}
        kind = {"apiVersion": "frrk8s.metallb.io/v1beta1", "kind": "BGPSessionState"}
        return server.request("POST", path, {**kind, "metadata": metadata}, token=token)

    made = created(label_value(name))
    assert made.ok, made.body
    gone = server.request("DELETE", f"{path}/{made.body['metadata']['name']}", token=token)
    assert gone.ok, gone.body
    check_denied(created(NODE), "may write objects of its own node only")
    server.request("DELETE", f"/api/v1/nodes/{name}")


def _put_service(server: KubeApiServer) -> list[str]:
    """Put in a BGPPeer that does not answer, and a Service for it; where the Service is."""
    objects: tuple[Object, ...] = (
        peer("tor", "127.0.0.9", peerPort=1),
        pool("front", "198.18.30.0/24"),
        advertisement("plain"),
    )
    for value in objects:
        plural, version = f"{value['kind'].lower()}s", value["apiVersion"].rpartition("/")[2]
        put(server, f"/apis/metallb.io/{version}/namespaces/metallb-system/{plural}", value)
    web, slices = load_balancer("web", "198.18.30.5")
    services = "/api/v1/namespaces/default/services"
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    status = web.pop("status")
    put(server, services, {**web, "metadata": {"name": "web"}, "spec": spec})
    answer = server.request(
        "PATCH", f"{services}/web/status", {"status": status}, "merge-patch+json"
    )
    assert answer.ok, answer.body
    metadata = {**slices["metadata"], "namespace": "default"}
    endpoints = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    put(server, endpoints, {**slices, "addressType": "IPv4", "metadata": metadata})
    return [f"{services}/web", f"{endpoints}/{metadata['name']}"]


def _what(grant: Grant) -> tuple[str, str, str]:
    _, group, resource, namespace = grant
    return (group, resource.partition("/")[0], namespace)


def _written(server: KubeApiServer) -> dict[str, Object]:
    """Return the objects that agents have written about their nodes, by path."""
    return {
        f"{path}/{item['metadata']['name']}": item
        for group, resource, namespace in WRITTEN
        for path in [
            f"/apis/{group}/v1beta1{f'/namespaces/{namespace}' * bool(namespace)}/{resource}"
        ]
        for item in server.request("GET", path).body["items"]
    }


def _check_written(server: KubeApiServer) -> None:
    found: dict[str, dict[str, Object]] = {resource: {} for _, resource, _ in WRITTEN}
    for path, item in _written(server).items():
        found[path.rsplit("/", 2)[1]][item["metadata"]["name"]] = item.get("status", {})
    assert found["configurationstates"][f"speaker-{NODE}"]["result"] == "Valid"
    ((name, status),) = found["servicebgpstatuses"].items()
    assert name.startswith("bgp-")
    assert status["peers"] == ["tor"]
    (status,) = found["bgpsessionstates"].values()
    assert status == {"node": NODE, "peer": "127.0.0.9", "bgpStatus": "Active", "bfdStatus": "N/A"}
    status = found["frrnodestates"][NODE]
    assert status["lastConversionResult"] == status["lastReloadResult"] == "success"
    assert status["runningConfig"] == status["desiredConfig"] != ""
