"""Memory of many objects: what they have in common is one object, and no collection looks at them."""

from __future__ import annotations

import gc
import json
from typing import Any

from resources.kind import Kind
from resources.meta import LAST_APPLIED, NO_TEXTS, Resource
from tests.support.kinds import ENDPOINT_SLICE, SERVICE


def decoded(kind: Kind[Any], number: int, **parts: Any) -> Resource:  # noqa: ANN401
    metadata = {
        "name": "web",
        "namespace": f"team-{1}",
        "labels": {f"example.com/a-name-that-is-long-enough-{1}": "blue" * number},
        "annotations": {LAST_APPLIED: "{}"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "web", "uid": ""}],
    }
    row: Resource = kind.decode_json(json.dumps({"metadata": metadata, **parts}))  # type: ignore[arg-type]
    return row


def test_equal_texts_of_objects_are_one() -> None:
    one, other = (decoded(SERVICE, number).metadata for number in (1, 2))
    assert one.name is other.name
    assert one.namespace is other.namespace
    assert one.creation_timestamp is other.creation_timestamp
    assert [*map(id, one.labels)] == [*map(id, other.labels)]
    assert one.owner_references[0].name is one.name
    assert one.owner_references[0].kind is other.owner_references[0].kind


def test_objects_without_labels_or_annotations_share_none() -> None:
    bare = SERVICE.decode({"metadata": {"name": "web", "namespace": "x"}}).metadata
    assert bare.labels is bare.annotations is NO_TEXTS
    assert decoded(SERVICE, 1).metadata.annotations is NO_TEXTS
    assert NO_TEXTS == {}


def test_equal_conditions_and_nodes_of_endpoints_are_one() -> None:
    endpoint = {"addresses": ["10.0.0.1"], "conditions": {"ready": True}, "nodeName": "node-1"}
    row = decoded(ENDPOINT_SLICE, 1, addressType="IPv4", endpoints=[endpoint, endpoint])
    one, other = row.endpoints  # type: ignore[attr-defined]
    assert one.conditions is other.conditions
    assert one.conditions.ready is True
    assert one.node_name is other.node_name


def _slice(address: str, node: str | None, service: str, namespace: str = "team-1") -> Resource:
    endpoint = {"addresses": [address], "conditions": {"ready": True}}
    row: Resource = ENDPOINT_SLICE.decode(
        {
            "metadata": {
                "name": "web-1",
                "namespace": namespace,
                "labels": {"kubernetes.io/service-name": service},
            },
            "addressType": "IPv4",
            "endpoints": [endpoint if node is None else {**endpoint, "nodeName": node}],
        }
    )
    return row


def test_pods_of_a_node_in_one_condition_are_one_endpoint_whose_addresses_change_no_row() -> None:
    one, other = (_slice(f"10.0.0.{number}", "node-1", "web") for number in (1, 2))
    assert one == other
    assert one.endpoints[0] is other.endpoints[0]  # type: ignore[attr-defined]
    assert one.endpoints[0].usable  # type: ignore[attr-defined]
    assert one.address_type is other.address_type  # type: ignore[attr-defined]
    assert _slice("10.0.0.1", "node-2", "web") != one


def test_addresses_of_the_api_and_of_endpoints_without_a_node_are_kept() -> None:
    for row in (_slice("10.0.0.1", None, "web"), _slice("10.0.0.1", "a", "kubernetes", "default")):
        assert row.endpoints[0].addresses == ("10.0.0.1",)  # type: ignore[attr-defined]


def test_the_two_fields_of_a_cluster_ip_are_one_text() -> None:
    row = decoded(SERVICE, 1, spec={"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "::1"]})
    assert row.spec.cluster_ip is row.spec.cluster_ips[0]  # type: ignore[attr-defined]


def test_the_collector_does_not_look_at_rows() -> None:
    row = decoded(SERVICE, 1)
    assert not any(map(gc.is_tracked, (row, row.metadata, row.spec, row.status)))  # type: ignore[attr-defined]
