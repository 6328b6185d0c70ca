"""Definitions that a cluster has, as ``kubectl get crds -o json`` prints them: whose they are.

A CustomResourceDefinition is Waggle's if all its versions have the schema of `resources.crds.generate`:
the description of their ``apiVersion`` identifies it. Labels, annotations and field managers do
not: they stay when another project applies its own definition over this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from resources.crds.generate import describe_version
from resources.errors import INVALID_JSON
from resources.manifests.yamlfile import YamlError, parse_yaml

KIND = "CustomResourceDefinition"


class InstalledError(Exception):
    """The text is not a list of CustomResourceDefinitions."""


def read_installed(data: bytes) -> dict[str, dict[str, Any]]:
    """Read installed CustomResourceDefinitions, a List or documents, JSON or YAML; by name.

    Raises `InstalledError`, also for an empty text: that is the output of a kubectl that failed.
    """
    if not data.strip():
        raise InstalledError("empty; an empty cluster has a List without items")
    definitions = {}
    for value in _documents(data):
        if not isinstance(value, dict) or "kind" not in value:
            raise InstalledError("not an object of Kubernetes")
        items = value.get("items") if str(value.get("kind", "")).endswith("List") else [value]
        for item in items if isinstance(items, list) else [items]:
            if not isinstance(item, dict) or item.get("kind", KIND) != KIND:
                raise InstalledError(f"not a list of {KIND}s")
            name = _at(item, "metadata", "name")
            if not isinstance(name, str):
                raise InstalledError(f"a {KIND} without a name")
            definitions[name] = item
    return definitions


def _documents(data: bytes) -> list[Any]:
    # JSON first: definitions of a whole cluster are megabytes, which take seconds as YAML.
    try:
        return [msgspec.json.decode(data)]
    except INVALID_JSON:
        pass
    try:
        return [document.value for document in parse_yaml(data)]
    except YamlError as error:
        raise InstalledError(f"line {error.line}: {error.message}") from None


def is_generated(definition: Mapping[str, Any]) -> bool:
    """True if Waggle, in this version or another, wrote an installed CustomResourceDefinition."""
    group, kind = _at(definition, "spec", "group"), _at(definition, "spec", "names", "kind")
    versions = _at(definition, "spec", "versions")
    if not isinstance(versions, list) or not versions or not kind:
        return False
    schema = ("schema", "openAPIV3Schema", "properties", "apiVersion", "description")
    return all(
        _at(version, *schema) == describe_version(group, _at(version, "name"))
        for version in versions
    )


def _at(value: Any, *path: str) -> Any:  # noqa: ANN401 - parts of a definition of any origin
    """Return a value inside of mappings, or None."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
