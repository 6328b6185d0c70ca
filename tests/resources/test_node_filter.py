"""The field selector of a kind: what an API server refuses is refused where it is declared."""

from __future__ import annotations

from typing import Any

import pytest

from resources.kind import Kind, NodeFilter
from resources.meta import Resource


def kind(fields: str, *, namespaced: bool = False) -> Kind[Any]:
    return Kind(
        "Lamp",
        Resource,
        group="test.waggle.dev",
        versions=("v1",),
        plural="lamps",
        namespaced=namespaced,
        table="lamps",
        of_node=NodeFilter(lambda *_: True, fields=fields),
    )


@pytest.mark.parametrize("fields", ["", "metadata.name={node}", "metadata.name!=lamp-{node}"])
def test_names_are_selected(fields: str) -> None:
    assert kind(fields).of_node is not None


def test_namespaces_are_selected_of_kinds_that_are_in_one() -> None:
    fields = "metadata.namespace==lamps,metadata.name={node}"
    assert kind(fields, namespaced=True).of_node is not None
    with pytest.raises(ValueError, match=r"of_node: metadata\.namespace: .* metadata\.name alone"):
        kind(fields)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("spec.nodeName={node}", "spec.nodeName: an API server selects by metadata.name alone"),
        ("metadata.labels.node={node}", "metadata.labels.node: an API server selects by"),
        ("metadata.name", "'metadata.name' is no term"),
        ("metadata.name={node},", "'' is no term"),
        ("metadata.name in ({node})", "is no term"),
        ("metadata.name={name}", r"'\{name\}' has another field than \{node\}"),
    ],
)
def test_what_an_api_server_refuses_is_refused(fields: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        kind(fields)
