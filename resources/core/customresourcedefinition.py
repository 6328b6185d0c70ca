"""CustomResourceDefinition (apiextensions.k8s.io/v1): which fields a kind has in this cluster."""

from __future__ import annotations

from typing import Any

import msgspec

from resources.meta import Resource, Struct


class DefinitionSchema(Struct, frozen=True):
    """The schema of one version."""

    open_api: dict[str, Any] = msgspec.field(default_factory=dict, name="openAPIV3Schema")


class DefinitionVersion(Struct, frozen=True):
    """One version of the kind."""

    name: str
    schema: DefinitionSchema = DefinitionSchema()


class DefinitionSpec(Struct, frozen=True):
    """The versions of the kind."""

    versions: tuple[DefinitionVersion, ...] = ()


class CustomResourceDefinition(Resource, frozen=True):
    """One definition."""

    spec: DefinitionSpec = DefinitionSpec()

    def has_field(self, version: str, *path: str) -> bool:
        """True if a version of the definition has a field; items of lists are passed."""
        for row in self.spec.versions:
            if row.name == version:
                return _has(row.schema.open_api, path)
        return False


def _has(schema: Any, path: tuple[str, ...]) -> bool:  # noqa: ANN401  JSON
    if not isinstance(schema, dict):
        return False
    if "items" in schema:
        return _has(schema["items"], path)
    if not path:
        return True
    first, *rest = path
    properties = schema.get("properties")
    return isinstance(properties, dict) and _has(properties.get(first), tuple(rest))
