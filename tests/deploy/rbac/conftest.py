"""The cluster that each of these tests begins with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.generate import CHART, MANIFESTS, NAMESPACE
from tests.cmd.lab import NODE
from tests.deploy.rbac.cluster_with_accounts import CLUSTER_WIDE, Cluster, Object
from tests.support.documents import documents
from tests.support.kinds import KINDS
from tests.support.kubernetes.accounts import CRDS, RBAC, apply, put, undefine
from tests.support.kubernetes.cilium import delete_cilium
from tests.support.kubernetes.server import KubeApiServer
from tests.support.wait import eventually

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/waggle-operator"
ELSEWHERE = {
    "ciliumloadbalancerippools": "CiliumLoadBalancerIPPool",
    "ciliumnodes": "CiliumNode",
    "ciliumpodippools": "CiliumPodIPPool",
}
"""Kinds that Cilium defines, and Waggle reads without defining them."""


@pytest.fixture(scope="package")
def definitions(apiserver: KubeApiServer) -> Iterator[list[Object]]:
    """Apply the definitions with kubectl, as in docs/install.md, for all tests of this package."""
    eventually(lambda: _check_nothing_ends(apiserver))
    apiserver.kubectl("apply", "--server-side", "-f", str(CHART / "crds"))
    defined = [_definition(plural, kind) for plural, kind in ELSEWHERE.items()]
    for definition in defined:
        put(apiserver, CRDS, definition)
    eventually(lambda: _check_served(apiserver))
    for path in sorted((CHART / "crds").glob("*.yaml")):
        defined += documents(path.read_text())
    yield defined
    undefine(apiserver, [definition["metadata"]["name"] for definition in defined])


@pytest.fixture
def cluster(
    apiserver: KubeApiServer, definitions: list[Object], tmp_path: Path
) -> Iterator[Cluster]:
    """Put in the objects of the manifests, and delete afterwards what the test has put in."""
    apply(apiserver, documents(MANIFESTS.read_text()))
    made = Cluster(apiserver, tmp_path, [], apiserver.audited)
    yield made
    made.stop()
    for definition in definitions:
        _delete_objects(apiserver, definition)
    for obj in documents(MANIFESTS.read_text()):
        place = CLUSTER_WIDE.get(obj["kind"])
        if obj["kind"] in ("Role", "RoleBinding"):
            place = f"{RBAC}/namespaces/{obj['metadata']['namespace']}/{obj['kind'].lower()}s"
        if place is not None:
            assert apiserver.request("DELETE", f"{place}/{obj['metadata']['name']}").ok
    apiserver.request("DELETE", LEASE)
    for name in (NODE, "n1", "n2"):
        apiserver.request("DELETE", f"/api/v1/nodes/{name}")
    delete_cilium(apiserver)


def _delete_objects(server: KubeApiServer, definition: Object) -> None:
    """Delete all objects of a kind, in whatever namespace."""
    spec = definition["spec"]
    (version,) = [version["name"] for version in spec["versions"] if version["storage"]]
    group = f"/apis/{spec['group']}/{version}"
    for item in server.request("GET", f"{group}/{spec['names']['plural']}").body["items"]:
        metadata = item["metadata"]
        place = f"namespaces/{metadata['namespace']}/" if "namespace" in metadata else ""
        path = f"{group}/{place}{spec['names']['plural']}/{metadata['name']}"
        assert server.request("DELETE", path).ok


def _check_nothing_ends(server: KubeApiServer) -> None:
    """Check that no definition of a test before is still being deleted."""
    items = server.request("GET", CRDS).body["items"]
    assert not [i["metadata"]["name"] for i in items if "deletionTimestamp" in i["metadata"]]


def _check_served(server: KubeApiServer) -> None:
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
