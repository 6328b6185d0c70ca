"""Annotations of row types for their CustomResourceDefinition: descriptions, list keys, CEL, columns.

The agent validates the same rules itself, as manifests do not pass an API server; tests compare both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from msgspec import Meta

SchemaPart = Mapping[str, object]
"""Members of an OpenAPI schema, as the API server names them."""

NAMED_LIST: SchemaPart = {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}
"""A list whose items have unique names: server-side apply merges item by item."""
TYPED_LIST: SchemaPart = {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}
"""A list whose items have unique types: conditions."""
ATOMIC_LIST: SchemaPart = {"x-kubernetes-list-type": "atomic"}
"""A list that one field manager owns as a whole."""
ATOMIC_MAP: SchemaPart = {"x-kubernetes-map-type": "atomic"}
"""An object that one field manager owns as a whole."""

VERSIONS = "versions"
"""The key, in ``Meta.extra``, of the versions that have a field."""


def known_values(*values: str) -> Meta:
    """Mark an enumeration that later releases may extend: only the schema of the CRD has it.

    An object with another value is a row; its dialect ignores the part with the value. Source:
    Kubernetes API conventions, "Constants": clients have to cope with values that they do not know.
    """
    return Meta(extra_json_schema={"enum": sorted(values)})


def doc(text: str, *parts: SchemaPart, versions: tuple[str, ...] = ()) -> Meta:
    """Mark a field with its description in the CRD's schema; ``versions``: which have the field."""
    schema: dict[str, object] = {}
    for part in parts:
        schema.update(part)
    extra = {VERSIONS: versions} if versions else None
    return Meta(description=text, extra_json_schema=schema or None, extra=extra)


class Rule(NamedTuple):
    """One CEL rule of a struct; `self` is the struct."""

    cel: str
    message: str
    field: str = ""
    """The JSON name of the field that the error refers to; it has to be in the schema."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; with a priority above 0 only with ``-o wide``."""

    name: str
    path: str
    type: str = "string"
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Definition:
    """The parts of a CustomResourceDefinition that are not in the row type."""

    description: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    status: type | None = None
    """The type of the status; with one, the status is a subresource."""
