"""The cluster that each of these tests begins with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.generate import CHART, MANIFESTS, NAMESPACE
from tests.cmd.lab import NODE
from tests.deploy.rbac.cluster import CLUSTER_WIDE, Cluster, Object, documents
from tests.support.kinds import KINDS
from tests.support.kubernetes.accounts import CRDS, put, undefine
from tests.support.kubernetes.cilium import delete_cilium
from tests.support.kubernetes.server import ApiServer
from tests.support.wait import eventually

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/waggle-operator"
ELSEWHERE = {
    "ciliumloadbalancerippools": "CiliumLoadBalancerIPPool",
    "ciliumnodes": "CiliumNode",
    "ciliumpodippools": "CiliumPodIPPool",
}
"""Kinds that Cilium defines, and Waggle reads without defining them."""


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
    apiserver.request("DELETE", LEASE)
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
