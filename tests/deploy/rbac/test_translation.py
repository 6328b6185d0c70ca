"""The rules that the chart adds for an operator that translates CiliumBGPPeeringPolicies."""

from __future__ import annotations

import pytest

from deploy.generate import MANIFESTS
from tests.deploy.rbac.cluster_with_accounts import (
    CILIUM,
    Cluster,
    Object,
    granted,
    node,
    owned_by,
    post,
    settings,
)
from tests.support.documents import documents
from tests.support.helm import Helm
from tests.support.kubernetes.accounts import apply, put
from tests.support.kubernetes.server import KubeApiServer

pytestmark = [pytest.mark.apiserver, pytest.mark.program, pytest.mark.timeout(300)]


@pytest.mark.helm
def test_an_operator_that_translates_needs_the_rules_that_the_chart_adds(
    cluster: Cluster, helm: Helm
) -> None:
    server = cluster.server
    translating = {"operator": {"cells": {"cilium": {"translatePeeringPolicies": True}}}}
    objects = helm.template(translating)
    apply(server, objects)
    added = granted(objects, "operator") - granted(documents(MANIFESTS.read_text()), "operator")
    for name, policy in (("n1", "a"), ("n2", "b")):
        put(server, "/api/v1/nodes", _annotated(node(name, bgp=policy)))
    # Of policy a there is everything already, as made for a policy of that name that is no more:
    # that is taken over. Of b there is nothing: that is created. What neither needs is deleted.
    gone = "11111111-2222-3333-4444-555555555555"
    made = {name: put(server, POLICIES, _policy(name)) for name in ("a", "b")}
    uid = made["a"]["metadata"]["uid"]
    for kind, (name, spec) in TRANSLATED.items():
        post(server, kind, name, spec, owned_by("a", gone))
        post(server, kind, "stray", spec, owned_by("a", uid))
    operator = cluster.run("operator", settings(objects, "operator"), 0)
    cluster.until_used("operator", added, operator)
    cluster.soon(lambda: _check_taken(server, uid), operator)


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


def _check_taken(server: KubeApiServer, uid: str) -> None:
    """Check that what stands for policy `a` is that one's, and that nothing else is."""
    for kind, (name, _) in TRANSLATED.items():
        items = server.request("GET", f"{CILIUM}/{kind.lower()}s").body["items"]
        owners = {i["metadata"]["name"]: i["metadata"]["ownerReferences"] for i in items}
        assert "stray" not in owners
        assert [owner["uid"] for owner in owners[name]] == [uid]
