"""Requests beyond the roles are rejected, and writes about another agent's node."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from deploy.generate import NAMESPACE
from tests.cmd.lab import NODE
from tests.deploy.rbac.cluster_with_accounts import (
    CILIUM,
    EVENTS,
    Cluster,
    Object,
    check_denied,
    cilium,
)
from tests.support.kubernetes.accounts import CRDS, put
from tests.support.kubernetes.server import Answer
from tests.support.wait import eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.program, pytest.mark.timeout(300)]


def test_other_requests_are_forbidden(cluster: Cluster) -> None:
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    node_config = f"{CILIUM}/ciliumbgpnodeconfigs"
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    refused: Mapping[str, list[tuple[str, str]]] = {
        "agent": [
            ("GET", "/api/v1/secrets"),
            ("GET", "/api/v1/namespaces/kube-system/secrets"),
            ("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets"),
            ("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/any"),
            ("GET", "/api/v1/pods"),
            ("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps"),
            ("POST", f"{accounts}/waggle-operator/token"),
            ("PATCH", "/api/v1/nodes/n1"),
            ("PATCH", "/api/v1/namespaces/default/services/web"),
            ("PATCH", f"{node_config}/n1"),
            ("DELETE", f"{node_config}/n1"),
            ("GET", f"{leases}/waggle-operator"),
            ("GET", "/apis/apps/v1/daemonsets"),
            ("GET", CRDS),
        ],
        "operator": [
            ("GET", "/api/v1/secrets"),
            ("GET", "/api/v1/namespaces/kube-system/secrets"),
            ("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/any"),
            ("GET", "/api/v1/services?watch=1"),
            ("PATCH", "/api/v1/namespaces/default/services/web"),
            ("GET", "/apis/discovery.k8s.io/v1/endpointslices?watch=1"),
            ("GET", "/apis/events.k8s.io/v1/events"),
            ("GET", "/api/v1/pods"),
            ("GET", "/api/v1/namespaces/kube-system/configmaps"),
            ("GET", "/api/v1/namespaces/kube-system/configmaps/another"),
            ("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/cilium-config"),
            ("GET", "/apis/apps/v1/namespaces/kube-system/daemonsets/cilium"),
            ("GET", "/apis/apps/v1/deployments"),
            ("POST", f"{accounts}/waggle-agent/token"),
            ("PATCH", "/api/v1/nodes/n1"),
            ("PATCH", f"{CRDS}/ciliumbgpnodeconfigs.cilium.io"),
            ("PATCH", f"{CRDS}/ciliumnodes.cilium.io/status"),
            ("GET", f"{leases}/another"),
            ("DELETE", f"{CILIUM}/ciliumbgpclusterconfigs/c"),
            ("GET", f"{CILIUM}/ciliumbgppeeringpolicies"),
            ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"),
        ],
    }
    for part, wishes in refused.items():
        token = cluster.server.token(f"waggle-{part}", NAMESPACE)
        for method, path in wishes:
            body: Object | None = None if method == "GET" else {}
            kind = "merge-patch+json" if method == "PATCH" else "json"
            answer = cluster.server.request(method, path, body, kind, token=token)
            assert answer.status == 403, f"{part}: {method} {path}: {answer.status}"
            assert answer.body["reason"] == "Forbidden"


def test_an_agent_writes_objects_of_its_own_node_only(cluster: Cluster) -> None:
    server = cluster.server
    for name in (NODE, "n1"):
        put(server, f"{CILIUM}/ciliumbgpnodeconfigs", cilium("CiliumBGPNodeConfig", _named(name)))
    own = server.token("waggle-agent", NAMESPACE, node=NODE)
    other = server.token("waggle-agent", NAMESPACE, node="n1")
    anywhere = server.token("waggle-agent", NAMESPACE)

    def status(name: str, token: str) -> Answer:
        path = f"{CILIUM}/ciliumbgpnodeconfigs/{name}/status"
        return server.request("PATCH", path, {"status": {}}, "merge-patch+json", token=token)

    # The API server learns of a policy within a moment.
    eventually(lambda: check_denied(status("n1", own)))
    assert status(NODE, own).ok
    assert status("n1", other).ok
    check_denied(status(NODE, other), "the agent of node n1 may write objects of its own node only")
    check_denied(status(NODE, anywhere), "is not that of a Pod, and names no node")

    def event(event: str, token: str, **regarding: str) -> Answer:
        value = {**EVENT, "metadata": {"name": event}, "regarding": regarding}
        return server.request("POST", EVENTS, value, token=token)

    eventually(lambda: check_denied(event("a", other, kind="Node", name="n1")))
    assert event("b", own, kind="Node", name=NODE).ok
    assert event("c", own, kind="CiliumBGPAdvertisement", name="any").ok
    check_denied(event("d", own, kind="Node", name="n1"), "about its own node only")
    check_denied(event("d", own, kind="CiliumBGPNodeConfig", name="n1"), "about its own node only")
    check_denied(event("d", anywhere, kind="Node", name=NODE), "names no node")
    # The series of an Event goes on where it began.
    series = {"series": {"count": 2, "lastObservedTime": EVENT["eventTime"]}}

    def go_on(token: str) -> Answer:
        return server.request("PATCH", f"{EVENTS}/b", series, "merge-patch+json", token=token)

    assert go_on(own).ok
    check_denied(go_on(other), "may write its own Events only")
    # A kubelet reports by the name of its node, too; a finalizer would keep an Event and its namespace.
    kubelet = {**EVENT, "reportingController": "kubelet", "reason": "Started"}
    made = {**kubelet, "metadata": {"name": "k"}, "regarding": {"kind": "Pod", "name": "any"}}
    check_denied(server.request("POST", EVENTS, made, token=own), "Events of waggle.dev/agent only")
    assert server.request("POST", EVENTS, made).ok
    answer = server.request("PATCH", f"{EVENTS}/k", series, "merge-patch+json", token=own)
    check_denied(answer, "Events of waggle.dev/agent only")
    forever = {"metadata": {"finalizers": ["example.com/forever"]}}
    answer = server.request("PATCH", f"{EVENTS}/b", forever, "merge-patch+json", token=own)
    check_denied(answer, "neither add nor remove finalizers")
    # Another account is the roles' business.
    assert server.request("PATCH", f"{EVENTS}/b", series, "merge-patch+json").ok
    for name in "bck":
        assert server.request("DELETE", f"{EVENTS}/{name}").ok


EVENT: Object = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "waggle.dev/agent",
    "reportingInstance": NODE,
    "action": "Report",
    "reason": "Any",
    "type": "Normal",
}


def _named(name: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"bgpInstances": [{"name": "main"}]}}
