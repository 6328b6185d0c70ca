"""Both programs on a real API server with the accounts of the plain manifests.

The server records the requests of each account. None of them may be rejected, and no role may grant
more: both are compared, verb by verb and resource by resource.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from cells.api import client
from deploy.generate import CHART, MANIFESTS, NAMESPACE
from reconcilers.report.write_spread import COUNT_INTERVAL_SECONDS
from resources.kubernetes import versioned_kinds
from tests.cmd.lab import NODE, configuration, routers
from tests.reconcilers.build import peer_config
from tests.reconcilers.metallb.objects import advertisement, peer, pool
from tests.reconcilers.metallb.test_node_objects import service as load_balancer
from tests.support.daemon import Daemon
from tests.support.helm import Helm
from tests.support.kinds import KINDS
from tests.support.kubernetes.accounts import CRDS, RBAC, put, undefine
from tests.support.kubernetes.cilium import delete_cilium, put_cilium
from tests.support.kubernetes.server import Answer, ApiServer, Request
from tests.support.wait import eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.program, pytest.mark.timeout(300)]

CILIUM = "/apis/cilium.io/v2"
ELSEWHERE = {
    "ciliumloadbalancerippools": "CiliumLoadBalancerIPPool",
    "ciliumnodes": "CiliumNode",
    "ciliumpodippools": "CiliumPodIPPool",
}
"""Kinds that Cilium defines, and Waggle reads without defining them."""
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
CLUSTER_WIDE = {
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "ValidatingAdmissionPolicy": f"{ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{ADMISSION}/validatingadmissionpolicybindings",
}
"""Where the objects of the manifests are that are in no namespace, and go after a test."""
SECONDS = 60.0

Object = dict[str, Any]
Grant = tuple[str, str, str, str]
"""Verb, group, resource, namespace (empty: everywhere)."""


def _where(request: Request) -> str:
    """Give the namespace of a request; Events are where their object is, so anywhere."""
    return "" if request.resource == "events" else request.namespace


def documents(text: str) -> list[Object]:
    """Read the objects of a file."""
    return [document for document in yaml.safe_load_all(text) if document is not None]


def granted(objects: list[Object], part: str) -> set[Grant]:
    """List what the roles grant that the account of a part is bound to."""
    roles = {(o["kind"], o["metadata"]["name"]): o for o in objects}
    found: set[Grant] = set()
    for binding in objects:
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        if f"waggle-{part}" not in [subject["name"] for subject in binding["subjects"]]:
            continue
        role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        namespace = binding["metadata"].get("namespace", "")
        for rule in role["rules"]:
            found |= {
                (verb, group, resource, namespace)
                for verb in rule["verbs"]
                for group in rule["apiGroups"]
                for resource in rule["resources"]
            }
    return found


def node(name: str, **labels: str) -> Object:
    """Spell a Node."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def cilium(kind: str, value: Object) -> Object:
    """Spell an object of Cilium's group."""
    return {"apiVersion": "cilium.io/v2", "kind": kind, **value}


@dataclass
class Cluster:
    """The API server with the objects of the plain manifests."""

    server: ApiServer
    directory: Path
    started: list[Daemon]
    since: int
    """Where the record of requests was when it began."""

    def used(self, part: str) -> set[Grant]:
        """Return the requests of an account; fails if one was rejected."""
        recorded = self.server.requests_by(f"waggle-{part}", NAMESPACE, self.since)
        # Discovery is granted to every account, by the API server's own role system:discovery.
        requests = [r for r in recorded if r.status in (401, 403) or not r.resource.startswith("/")]
        refused = sorted(str(request) for request in requests if request.status in (401, 403))
        assert not refused
        found = {(r.verb, r.group, r.resource, _where(r)) for r in requests}
        # An object that comes to be by apply: a patch, for which the server wants `create` as well.
        found |= {
            ("create", r.group, r.resource, _where(r))
            for r in requests
            if (r.verb, r.status) == ("patch", 201)
        }
        return found

    def run(self, part: str, configuration: str, port: int, *arguments: str) -> Daemon:
        """Start a program as its Pod would, but for where the API server is and where it listens."""
        config = self.directory / f"{part}.yaml"
        config.write_text(configuration)
        token = self.server.token(f"waggle-{part}", NAMESPACE, node=NODE)
        access = self.server.access_with(token, self.directory / f"{part}.kubeconfig")
        command: list[str | Path] = [sys.executable, "-m", f"waggle_{part}", "--config", config]
        command += ["--kubeconfig", access, "--http-address", f"127.0.0.1:{port}", *arguments]
        daemon = Daemon(part, command, log=self.directory / f"{part}.log")
        daemon.start()
        self.started.append(daemon)
        return daemon

    def stop(self) -> None:
        """Stop what runs."""
        while self.started:
            self.started.pop().stop()

    def until_used(self, part: str, grants: set[Grant], daemon: Daemon) -> None:
        """Wait until an account has made use of all that it is granted."""

        def checked() -> None:
            unused = sorted(grants - self.used(part))
            assert not unused, unused

        self.soon(checked, daemon, SECONDS + COUNT_INTERVAL_SECONDS)

    def soon(self, check: Callable[[], None], daemon: Daemon, within: float = SECONDS) -> None:
        """Wait until something holds; a program that has ended is started again meanwhile."""

        def checked() -> None:
            if not daemon.running:
                # As the kubelet would: on a busy machine an operator can lose its Lease.
                daemon.start()
            check()

        eventually(checked, within=within, interval=0.2, context=daemon.tail)


@pytest.fixture
def cluster(apiserver: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    """Apply definitions and manifests with kubectl, as in docs/install.md."""
    eventually(lambda: _check_nothing_ends(apiserver))
    apiserver.kubectl("apply", "--server-side", "-f", str(CHART / "crds"))
    apiserver.kubectl("apply", "-f", str(MANIFESTS))
    for plural, kind in ELSEWHERE.items():
        put(apiserver, CRDS, _definition(plural, kind))
    eventually(lambda: _check_served(apiserver))
    made = Cluster(apiserver, tmp_path, [], apiserver.audited)
    yield made
    made.stop()
    definitions = documents((CHART / "crds" / "cilium.yaml").read_text())
    undefine(
        apiserver,
        [
            *(obj["metadata"]["name"] for obj in definitions),
            *(f"{plural}.cilium.io" for plural in ELSEWHERE),
        ],
    )
    for obj in documents(MANIFESTS.read_text()):
        place = CLUSTER_WIDE.get(obj["kind"])
        if place is not None:
            assert apiserver.request("DELETE", f"{place}/{obj['metadata']['name']}").ok
    for name in (NODE, "n1", "n2"):
        apiserver.request("DELETE", f"/api/v1/nodes/{name}")
    delete_cilium(apiserver)


def _check_nothing_ends(server: ApiServer) -> None:
    """Check that no definition of a test before is still being deleted."""
    items = server.request("GET", CRDS).body["items"]
    assert not [i["metadata"]["name"] for i in items if "deletionTimestamp" in i["metadata"]]


def _check_served(server: ApiServer) -> None:
    plurals = [kind.plural for kind in KINDS if kind.group == "cilium.io"]
    for plural in plurals:
        version = "v2alpha1" if plural == "ciliumbgppeeringpolicies" else "v2"
        assert server.request("GET", f"/apis/cilium.io/{version}/{plural}").ok


def _definition(plural: str, kind: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.cilium.io"},
        "spec": {
            "group": "cilium.io",
            "names": {"kind": kind, "plural": plural},
            "scope": "Cluster",
            "versions": [version],
        },
    }


def settings(objects: list[Object], part: str) -> str:
    """Give the configuration file that the manifests have for a part."""
    (found,) = [
        o["data"]["config.yaml"]
        for o in objects
        if (o["kind"], o["metadata"]["name"]) == ("ConfigMap", f"waggle-{part}")
    ]
    return str(found)


@pytest.mark.timeout(300)
def test_both_programs_need_all_rules_of_their_roles(cluster: Cluster) -> None:
    server = cluster.server
    objects = documents(MANIFESTS.read_text())
    with routers(cluster.directory, 1) as ports:
        _fill(server, configuration(ports))
        owner = server.request("GET", f"{CILIUM}/ciliumbgpclusterconfigs/rack").body
        reference = {**_owner("rack", owner["metadata"]["uid"]), "kind": owner["kind"]}
        reference["apiVersion"] = owner["apiVersion"]
        stray = {"bgpInstances": [{"name": "stray", "localASN": 65099}]}
        _post(server, "CiliumBGPNodeConfig", "n2", stray, reference)
        _store_as_before(server)

        operator = cluster.run("operator", settings(objects, "operator"), 0)
        # Then all Events of the session are of the NodeConfig, from the first one on.
        cluster.soon(lambda: _check_node_configs(server, NODE, "n2"), operator)
        socket = f"--api-socket={cluster.directory / 'api'}"
        agent = cluster.run("agent", settings(objects, "agent"), 0, f"--node-name={NODE}", socket)
        grants = {part: granted(objects, part) for part in ("agent", "operator")}

        # A session that comes up is an Event; the same again goes on in it.
        cluster.soon(lambda: _check_state(server, "established"), agent)
        cluster.soon(lambda: _check_event(server, "SessionEstablished"), agent)
        (peer,) = [o for o in configuration(ports) if o["kind"] == "CiliumBGPPeerConfig"]
        peer["spec"]["timers"]["holdTimeSeconds"] = 30
        put(server, f"{CILIUM}/ciliumbgppeerconfigs", peer)
        put(server, "/api/v1/nodes", node("n2", rack="r2"))
        cluster.soon(lambda: _check_node_configs(server, NODE), operator)
        cluster.until_used("operator", grants["operator"], operator)
        # The count of an Event is written once a minute.
        cluster.until_used("agent", grants["agent"], agent)
        cluster.stop()
    for part in ("agent", "operator"):
        assert cluster.used(part) == grants[part]


def _fill(server: ApiServer, objects: list[Object]) -> None:
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


def test_other_requests_are_forbidden(cluster: Cluster) -> None:
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    node_config = f"{CILIUM}/ciliumbgpnodeconfigs"
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    refused: Mapping[str, list[tuple[str, str]]] = {
        "agent": [
            ("GET", "/api/v1/secrets"),
            ("GET", "/api/v1/namespaces/kube-system/secrets"),
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
            ("GET", "/api/v1/services"),
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
    eventually(lambda: _check_denied(status("n1", own)), within=SECONDS)
    assert status(NODE, own).ok
    assert status("n1", other).ok
    _check_denied(
        status(NODE, other), "the agent of node n1 may write objects of its own node only"
    )
    _check_denied(status(NODE, anywhere), "is not that of a Pod, and names no node")

    def event(event: str, token: str, **regarding: str) -> Answer:
        value = {**EVENT, "metadata": {"name": event}, "regarding": regarding}
        return server.request("POST", EVENTS, value, token=token)

    eventually(lambda: _check_denied(event("a", other, kind="Node", name="n1")), within=SECONDS)
    assert event("b", own, kind="Node", name=NODE).ok
    assert event("c", own, kind="CiliumBGPAdvertisement", name="any").ok
    _check_denied(event("d", own, kind="Node", name="n1"), "about its own node only")
    _check_denied(event("d", own, kind="CiliumBGPNodeConfig", name="n1"), "about its own node only")
    _check_denied(event("d", anywhere, kind="Node", name=NODE), "names no node")
    # The series of an Event goes on where it began.
    series = {"series": {"count": 2, "lastObservedTime": EVENT["eventTime"]}}

    def go_on(token: str) -> Answer:
        return server.request("PATCH", f"{EVENTS}/b", series, "merge-patch+json", token=token)

    assert go_on(own).ok
    _check_denied(go_on(other), "may write its own Events only")
    # Another account is the roles' business.
    assert server.request("PATCH", f"{EVENTS}/b", series, "merge-patch+json").ok
    for name in "bc":
        assert server.request("DELETE", f"{EVENTS}/{name}").ok


EVENT: Object = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "waggle-agent",
    "reportingInstance": NODE,
    "action": "Report",
    "reason": "Any",
    "type": "Normal",
}


def _named(name: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"bgpInstances": [{"name": "main"}]}}


def _check_denied(answer: Answer, reason: str = "") -> None:
    assert answer.status == 403, answer.body
    assert "ValidatingAdmissionPolicy" in answer.body["message"]
    assert reason in answer.body["message"]


@pytest.mark.helm
def test_pods_are_admitted_in_the_namespaces_of_the_chart(apiserver: ApiServer, helm: Helm) -> None:
    """The answer of the API server to Pods of each part, in namespaces of two standards."""
    objects = helm.template({"operator": {"hostNetwork": False}})
    standards = {"strict": "restricted", "open": "privileged"}
    for name, standard in standards.items():
        labels = {"pod-security.kubernetes.io/enforce": standard}
        metadata = {"name": f"pods-{name}", "labels": labels}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        put(apiserver, "/api/v1/namespaces", namespace)
    admitted = {}
    for kind in ("DaemonSet", "Deployment"):
        (template,) = [o["spec"]["template"] for o in objects if o["kind"] == kind]
        metadata = {**template["metadata"], "name": kind.lower()}
        value = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        for name in standards:
            path = f"/api/v1/namespaces/pods-{name}/pods?dryRun=All"
            answer = apiserver.request("POST", path, value)
            assert answer.ok or "violates PodSecurity" in answer.body["message"], answer.body
            admitted[kind, name] = answer.ok
    assert admitted == {
        ("DaemonSet", "strict"): False,
        ("DaemonSet", "open"): True,
        ("Deployment", "strict"): True,
        ("Deployment", "open"): True,
    }


@pytest.mark.helm
def test_an_operator_that_translates_needs_the_rules_that_the_chart_adds(
    cluster: Cluster, helm: Helm
) -> None:
    server = cluster.server
    translating = {"operator": {"cells": {"cilium": {"translatePeeringPolicies": True}}}}
    text = helm.text(translating)
    objects = documents(text)
    server.kubectl("apply", "-f", "-", text=text)
    added = granted(objects, "operator") - granted(documents(MANIFESTS.read_text()), "operator")
    for name, policy in (("n1", "a"), ("n2", "b")):
        put(server, "/api/v1/nodes", _annotated(node(name, bgp=policy)))
    # Of policy a there is everything already, as made for a policy of that name that is no more:
    # that is taken over. Of b there is nothing: that is created. What neither needs is deleted.
    gone = "11111111-2222-3333-4444-555555555555"
    made = {name: put(server, POLICIES, _policy(name)) for name in ("a", "b")}
    uid = made["a"]["metadata"]["uid"]
    for kind, (name, spec) in TRANSLATED.items():
        _post(server, kind, name, spec, _owner("a", gone))
        _post(server, kind, "stray", spec, _owner("a", uid))
    operator = cluster.run("operator", settings(objects, "operator"), 0)
    cluster.until_used("operator", added, operator)
    cluster.soon(lambda: _check_taken(server, uid), operator)


@pytest.mark.helm
def test_an_agent_counts_the_objects_of_a_dialect_that_is_off_with_what_the_chart_grants(
    cluster: Cluster, helm: Helm
) -> None:
    server = cluster.server
    values = {"agent": {"cells": {"cilium": {"enabled": False}}}}
    text = helm.text(values)
    objects = documents(text)
    server.kubectl("apply", "-f", "-", text=text)
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
        notes = client.get(socket, "/v1/peers", {}).get("notes", [])
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


@pytest.mark.helm
def test_an_agent_writes_the_objects_of_its_node_with_what_the_chart_grants(
    cluster: Cluster, helm: Helm
) -> None:
    server = cluster.server
    on = {"enabled": True}
    values: Object = {"cells": {"cilium": {"enabled": False}, "frrk8s": on, "metallb": on}}
    values["agent"] = {"cells": {"frrk8s": {"alwaysBlock": ["auto"]}}}
    text = helm.text(values)
    objects = documents(text)
    with contextlib.ExitStack() as after:
        for namespace in ("frr-k8s-system", "metallb-system"):
            metadata = {"name": namespace}
            value = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            put(server, "/api/v1/namespaces", value)
        server.kubectl("apply", "-f", "-", text=text)
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
            _check_denied(server.request("DELETE", path, token=other), "of its own node only")
        cluster.since = server.audited
        off = (*arguments, "--status-report=false")
        agent = cluster.run("agent", settings(objects, "agent"), 0, *off)
        cluster.until_used("agent", grants("agent") - used, agent)
        assert len(grants("agent")) == len(WRITTEN) * 5


def _put_service(server: ApiServer) -> list[str]:
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


def _written(server: ApiServer) -> dict[str, Object]:
    """Return the objects that agents have written about their nodes, by path."""
    return {
        f"{path}/{item['metadata']['name']}": item
        for group, resource, namespace in WRITTEN
        for path in [
            f"/apis/{group}/v1beta1{f'/namespaces/{namespace}' * bool(namespace)}/{resource}"
        ]
        for item in server.request("GET", path).body["items"]
    }


def _check_written(server: ApiServer) -> None:
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


POLICIES = "/apis/cilium.io/v2alpha1/ciliumbgppeeringpolicies"
TRANSLATED: dict[str, tuple[str, Object]] = {
    "CiliumBGPClusterConfig": ("bgpp-a", {"bgpInstances": [{"name": "stray"}]}),
    "CiliumBGPPeerConfig": ("bgpp-a-65001-192.0.2.1", {}),
    "CiliumBGPAdvertisement": (
        "bgpp-a-65001",
        {"advertisements": [{"advertisementType": "PodCIDR"}]},
    ),
    "CiliumBGPNodeConfigOverride": ("n1", {"bgpInstances": [{"name": "stray"}]}),
}
"""What stands for policy `a`: names, and some specification of the kind."""


def _annotated(value: Object) -> Object:
    annotations = {"cilium.io/bgp-virtual-router.65001": "local-port=1790"}
    return {**value, "metadata": {**value["metadata"], "annotations": annotations}}


def _policy(name: str) -> Object:
    neighbor = {"peerAddress": "192.0.2.1/32", "peerASN": 65000}
    router = {"localASN": 65001, "exportPodCIDR": True, "neighbors": [neighbor]}
    return {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": "CiliumBGPPeeringPolicy",
        "metadata": {"name": name},
        "spec": {"nodeSelector": {"matchLabels": {"bgp": name}}, "virtualRouters": [router]},
    }


def _owner(name: str, uid: str) -> Object:
    kind = {"apiVersion": "cilium.io/v2alpha1", "kind": "CiliumBGPPeeringPolicy"}
    return {**kind, "name": name, "uid": uid, "controller": True}


def _post(server: ApiServer, kind: str, name: str, spec: Object, owner: Object) -> None:
    """Create an object as another operator does."""
    value = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec}
    path = f"{CILIUM}/{kind.lower()}s?fieldManager=cilium-operator"
    answer = server.request("POST", path, cilium(kind, value))
    assert answer.ok, answer.body


def _check_state(server: ApiServer, state: str) -> None:
    answer = server.request("GET", f"{CILIUM}/ciliumbgpnodeconfigs/{NODE}")
    assert answer.ok
    instances = answer.body.get("status", {}).get("bgpInstances", [])
    peers = [peer for instance in instances for peer in instance.get("peers", [])]
    assert [peer.get("peeringState") for peer in peers] == [state]


def _check_event(server: ApiServer, reason: str) -> None:
    items = server.request("GET", EVENTS).body["items"]
    assert reason in {item["reason"] for item in items if item["reportingInstance"] == NODE}


def _check_node_configs(server: ApiServer, *names: str) -> None:
    items = server.request("GET", f"{CILIUM}/ciliumbgpnodeconfigs").body["items"]
    assert {item["metadata"]["name"] for item in items} == set(names)


def _check_taken(server: ApiServer, uid: str) -> None:
    """Check that what stands for policy `a` is that one's, and that nothing else is."""
    for kind, (name, _) in TRANSLATED.items():
        items = server.request("GET", f"{CILIUM}/{kind.lower()}s").body["items"]
        owners = {i["metadata"]["name"]: i["metadata"]["ownerReferences"] for i in items}
        assert "stray" not in owners
        assert [owner["uid"] for owner in owners[name]] == [uid]


def _store_as_before(server: ApiServer) -> None:
    """Have the definitions of v2 name the old version."""
    status = {"status": {"storedVersions": ["v2alpha1", "v2"]}}
    for kind in versioned_kinds(KINDS):
        path = f"{CRDS}/{kind.plural}.{kind.group}/status"
        assert server.request("PATCH", path, status, "merge-patch+json").ok
