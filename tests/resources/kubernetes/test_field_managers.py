"""What others own of an object that is ours as a whole becomes ours, and nothing else does."""

from __future__ import annotations

from typing import Any

from resources.kubernetes.field_managers import adopted, annotations_of

OWNERS: dict[str, Any] = {"f:ownerReferences": {".": {}, 'k:{"uid":"old"}': {}}}
SPEC: dict[str, Any] = {
    "f:bgpInstances": {'k:{"name":"i"}': {".": {}, "f:name": {}, "f:localASN": {}}}
}


def entry(
    manager: str, fields: dict[str, Any], operation: str = "Update", **more: str
) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "cilium.io/v2",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }


def test_spec_and_owners_of_another_manager_are_transferred() -> None:
    theirs = entry("cilium-operator", {"f:metadata": OWNERS, "f:spec": SPEC})
    assert adopted([theirs], "us", "cilium.io/v2") == [
        entry("us", {"f:metadata": OWNERS, "f:spec": SPEC}, "Apply")
    ]


def test_ownership_of_labels_annotations_and_statuses_is_not_transferred() -> None:
    labels: dict[str, Any] = {"f:metadata": {"f:labels": {"f:a": {}}}}
    status = entry("agent", {"f:status": {"f:conditions": {}}}, subresource="status")
    theirs = entry("person", {"f:metadata": labels["f:metadata"] | OWNERS, "f:spec": SPEC})
    found = adopted([status, theirs], "us", "cilium.io/v2")
    assert found == [
        entry("us", {"f:spec": SPEC, "f:metadata": OWNERS}, "Apply"),
        status,
        entry("person", labels),
    ]


def test_owned_fields_are_united_with_transferred_ones() -> None:
    mine = entry("us", {"f:spec": {"f:bgpInstances": {'k:{"name":"j"}': {}}}}, "Apply", time="t")
    other = entry("us", {"f:spec": SPEC})
    (found,) = adopted([mine, other], "us", "cilium.io/v2") or []
    assert found["time"] == "t"
    assert found["fieldsV1"]["f:spec"]["f:bgpInstances"] == {
        'k:{"name":"j"}': {},
        **SPEC["f:bgpInstances"],
    }


def test_without_fields_of_other_managers_nothing_is_transferred() -> None:
    mine = entry("us", {"f:spec": SPEC, "f:metadata": OWNERS}, "Apply")
    labels = entry("person", {"f:metadata": {"f:labels": {"f:a": {}}}})
    odd = {"manager": "odd", "operation": "Update"}
    assert adopted([mine, labels, odd], "us", "cilium.io/v2") is None
    assert adopted([], "us", "cilium.io/v2") is None


def test_the_annotations_that_a_manager_has_applied() -> None:
    def entry(manager: str, operation: str, *keys: str) -> dict[str, Any]:
        fields: dict[str, Any] = {"f:metadata": {"f:annotations": {f"f:{key}": {} for key in keys}}}
        return {"manager": manager, "operation": operation, "fieldsV1": fields}

    entries = [
        entry("us", "Apply", "a", "b"),
        entry("us", "Update", "c"),
        entry("person", "Apply", "d"),
        {"manager": "us", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:annotations": {}}}},
    ]
    assert annotations_of(entries, "us") == {"a", "b"}


def test_our_own_entry_of_the_status_stays_apart() -> None:
    status = entry("us", {"f:status": {"f:conditions": {}}}, "Apply", subresource="status")
    theirs = entry("person", {"f:spec": SPEC})
    found = adopted([status, theirs], "us", "cilium.io/v2")
    assert found == [entry("us", {"f:spec": SPEC}, "Apply"), status]
