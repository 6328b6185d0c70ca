"""Generates the CustomResourceDefinition of a kind (apiextensions.k8s.io/v1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from resources.crds.schema import Schema, schema_of
from resources.crds.schema_markers import Column, Definition
from resources.kind import Kind


class KindWithoutDefinitionError(LookupError):
    """The kind is built into Kubernetes and has no definition."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not defined by a CustomResourceDefinition")


def defined(kinds: Iterable[Kind[Any]]) -> tuple[Kind[Any], ...]:
    """Return the kinds whose CustomResourceDefinition Waggle generates, in their order."""
    return tuple(kind for kind in kinds if kind.definition is not None)


def custom_resource_definition(kind: Kind[Any]) -> dict[str, Any]:
    """Generate the definition of a kind as JSON. Raises `KindWithoutDefinitionError`."""
    definition = kind.definition
    if definition is None:
        raise KindWithoutDefinitionError(kind.name)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": list(definition.short_names),
                "categories": list(definition.categories),
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(kind, definition, version) for version in kind.versions],
        },
    }


def describe_version(group: str, version: str) -> str:
    """Return the text of ``apiVersion`` in a generated definition: it marks it as Waggle's.

    Clusters have it: another text would make every definition of before that of another project.
    """
    return f"The version of the API: {group}/{version}."


def _version(kind: Kind[Any], definition: Definition, version: str) -> dict[str, Any]:
    stored = kind.versions[0]
    result: dict[str, Any] = {"name": version, "served": True, "storage": version == stored}
    if version != stored:
        result["deprecated"] = True
        result["deprecationWarning"] = (
            f"{kind.group}/{version} {kind.name} is deprecated; use {kind.group}/{stored}"
        )
    result["schema"] = {"openAPIV3Schema": _object(kind, definition, version)}
    if definition.status is not None:
        result["subresources"] = {"status": {}}
    result["additionalPrinterColumns"] = [_column(column) for column in definition.columns]
    return result


def _object(kind: Kind[Any], definition: Definition, version: str) -> Schema:
    """Return the schema of the whole object; the API server validates the metadata."""
    row = schema_of(kind.row, version)
    properties: Schema = {
        "apiVersion": {
            "type": "string",
            "description": describe_version(kind.group, version),
        },
        "kind": {"type": "string", "description": f"The kind of the object: {kind.name}."},
        "metadata": {"type": "object"},
        "spec": row["properties"]["spec"],
    }
    if definition.status is not None:
        properties["status"] = schema_of(definition.status, version) | {
            "description": "The observed state; written by programs, not by people."
        }
    return {
        "type": "object",
        "description": definition.description,
        "properties": properties,
        "required": row["required"],
    }


def _column(column: Column) -> dict[str, Any]:
    result: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.description:
        result["description"] = column.description
    if column.priority:
        result["priority"] = column.priority
    return result
