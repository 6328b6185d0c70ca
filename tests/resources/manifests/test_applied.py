"""Manifests that are applied on top of present objects, as ``kubectl apply`` does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.kind import Kinds
from resources.manifests.applied import LAST_APPLIED, PresentObjects, without_absent
from tests.support.kinds import KINDS

Json = dict[str, Any]
OF_FRRK8S = Kinds((*KINDS, FRR_CONFIGURATION))


def described(kind: str, api_version: str, **members: Any) -> Json:  # noqa: ANN401  JSON
    metadata = {"name": "x"} | members.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **members}


def applied(present: Json, manifest: Json) -> Json:
    objects = PresentObjects(Kinds(KINDS))
    assert list(objects.remember(present)) == [present]
    before = json.dumps(present)
    (merged,) = objects.apply(manifest)
    assert json.dumps(present) == before
    assert isinstance(merged, dict)
    return merged


def service(**members: Any) -> Json:  # noqa: ANN401  JSON
    return described("Service", "v1", **members)


def test_addresses_that_a_cluster_has_given_a_service_stay() -> None:
    status = {"loadBalancer": {"ingress": [{"ip": "198.51.100.7"}]}}
    present = service(
        metadata={"namespace": "shop", "uid": "1", "labels": {"app": "web"}},
        spec={"type": "LoadBalancer", "clusterIP": "10.96.0.7", "externalIPs": ["192.0.2.7"]},
        status=status,
    )
    manifest = service(
        metadata={"namespace": "shop", "labels": {"app": "shop"}}, spec={"type": "LoadBalancer"}
    )
    merged = applied(present, manifest)
    assert merged["spec"] == {"type": "LoadBalancer", "clusterIP": "10.96.0.7"}
    assert merged["status"] == status
    assert merged["metadata"]["labels"] == {"app": "shop"}
    assert merged["metadata"]["uid"] == "1"


def test_only_fields_of_the_manifest_before_are_removed() -> None:
    last = service(metadata={"labels": {"app": "web"}}, spec={"externalIPs": ["192.0.2.7"]})
    present = service(
        metadata={
            "labels": {"app": "web", "of": "a controller"},
            "annotations": {LAST_APPLIED: json.dumps(last), "of": "a controller"},
        },
        spec={"externalIPs": ["192.0.2.7"], "loadBalancerClass": "of a webhook"},
    )
    merged = applied(present, service(metadata={"labels": {}}, spec={}))
    assert merged["spec"] == {"loadBalancerClass": "of a webhook"}
    assert merged["metadata"]["labels"] == {"of": "a controller"}
    assert "of" in merged["metadata"]["annotations"]


@pytest.mark.parametrize(
    "annotation",
    [{}, {LAST_APPLIED: "[nonsense"}, {LAST_APPLIED: '{"a":' * 100_000}],
    ids=[0, 1, 2],
)
def test_a_custom_resource_has_the_specification_of_the_manifest(annotation: Json) -> None:
    present = described(
        "CiliumBGPPeerConfig",
        "cilium.io/v2",
        metadata={"creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotation},
        spec={"timers": {"holdTimeSeconds": 30}, "ebgpMultihop": 2},
        status={"conditions": []},
    )
    manifest = described("CiliumBGPPeerConfig", "cilium.io/v2", spec={"ebgpMultihop": 4})
    merged = applied(present, manifest)
    assert merged["spec"] == {"ebgpMultihop": 4}
    assert merged["status"] == {"conditions": []}
    assert merged["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


def test_a_node_keeps_what_no_manifest_describes() -> None:
    present = described(
        "Node", "v1", metadata={"labels": {"rack": "r1"}}, spec={"podCIDRs": ["10.0.0.0/24"]}
    )
    merged = applied(present, described("Node", "v1", metadata={"labels": {"bgp": "on"}}))
    assert merged["metadata"]["labels"] == {"rack": "r1", "bgp": "on"}
    assert merged["spec"] == {"podCIDRs": ["10.0.0.0/24"]}


def test_a_namespace_keeps_the_label_of_its_name() -> None:
    named = {"kubernetes.io/metadata.name": "x"}
    present = described("Namespace", "v1", metadata={"labels": {"team": "red", **named}})
    merged = applied(present, described("Namespace", "v1", metadata={"labels": {"bgp": "on"}}))
    assert merged["metadata"]["labels"] == {"bgp": "on", **named}


def test_what_is_new_or_no_object_is_as_it_is() -> None:
    objects = PresentObjects(Kinds(KINDS))
    for value in (service(), "text", {"kind": "Service", "metadata": 3}, {"kind": "Unknown"}):
        assert list(objects.apply(value)) == [value]


def test_custom_resources_without_a_manifest_are_pruned_and_no_others() -> None:
    config = described("CiliumBGPPeerConfig", "cilium.io/v2")
    kept = described("CiliumBGPPeerConfig", "cilium.io/v2", metadata={"name": "kept"})
    owned = described(
        "CiliumBGPNodeConfig", "cilium.io/v2", metadata={"ownerReferences": [{"name": "x"}]}
    )
    generated = described(
        "FRRConfiguration",
        "frrk8s.metallb.io/v1beta1",
        metadata={"generateName": "ovnk-generated-", "name": "ovnk-generated-vl8gk"},
    )
    named = [("CiliumBGPPeerConfig", "", "kept")]
    present = [service(), config, kept, owned, generated]
    stays = [service(), kept, owned, generated]
    assert list(without_absent(present, OF_FRRK8S, named)) == stays


@pytest.mark.parametrize(
    ("entries", "stays"),
    [
        pytest.param([("speaker", "Update", "")], True, id="a program"),
        pytest.param(
            [("speaker", "Update", ""), ("kubectl", "Apply", "status")], True, id="status"
        ),
        pytest.param([("kubectl-create", "Update", "")], False, id="kubectl create"),
        pytest.param([("helm", "Update", ""), ("speaker", "Update", "")], False, id="Helm"),
        pytest.param([("ci-job", "Apply", "")], False, id="an apply of the server"),
        pytest.param([], False, id="no field manager"),
    ],
)
def test_an_object_that_a_program_has_made_is_not_pruned(
    entries: list[tuple[str, str, str]], stays: bool
) -> None:
    """MetalLB's speaker writes an FRRConfiguration of each node, with its own name and no owner."""
    fields = [
        {"manager": manager, "operation": operation, "subresource": subresource}
        for manager, operation, subresource in entries
    ]
    metadata: dict[str, Any] = {"name": "metallb-n1", "managedFields": fields}
    value = described("FRRConfiguration", "frrk8s.metallb.io/v1beta1", metadata=metadata)
    assert list(without_absent([value], OF_FRRK8S, ())) == ([value] if stays else [])
    value["metadata"]["annotations"] = {LAST_APPLIED: "{}"}
    assert list(without_absent([value], OF_FRRK8S, ())) == []
