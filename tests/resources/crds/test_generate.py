"""The definitions are complete: structural, described, and generated from the row types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from resources.crds.generate import (
    KindWithoutDefinitionError,
    custom_resource_definition,
    defined,
)
from resources.crds.schema import UnschematicTypeError, schema_of
from resources.crds.schema_markers import NAMED_LIST, Rule, doc
from resources.kind import Kind
from resources.meta import Struct
from tests.support import kinds
from tests.support.kinds import KINDS

Schema = dict[str, Any]


class Item(Struct, frozen=True):
    """For these tests."""

    cel = (Rule("self.maxSize > 0", "has to be positive", "maxSize"), Rule("true", "never"))
    name: Annotated[str, Meta(min_length=1, max_length=9), doc("Its name.")]
    max_size: Annotated[int, Meta(ge=0, le=5)] = 3
    large: Annotated[int, Meta(ge=0, le=4294967295)] | None = None
    mode: Literal["b", "a"] = "a"
    old: Annotated[str, doc("Gone.", versions=("v1",))] = ""


class Row(Struct, frozen=True):
    """For these tests."""

    items: Annotated[tuple[Item, ...], Meta(min_length=1), doc("Items.", NAMED_LIST)]
    item: Item | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    on: bool = False


class Inner(Struct, frozen=True):
    """For the next test."""

    size: int = 3


class Bare(Struct, frozen=True):
    """For the next test."""

    size: int | None = None


class Outer(Struct, frozen=True):
    """For the next test."""

    inner: Inner = msgspec.field(default_factory=Inner)
    bare: Bare = msgspec.field(default_factory=Bare)
    perhaps: Inner | None = None


def test_an_absent_struct_gets_the_defaults_of_its_fields() -> None:
    properties = schema_of(Outer, "v1")["properties"]
    assert {name: part.get("default") for name, part in properties.items()} == {
        "inner": {"size": 3},
        "bare": None,
        "perhaps": None,
    }


def test_a_schema_has_the_row_types_types_limits_defaults_and_enumerations() -> None:
    item = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 9, "description": "Its name."},
            "maxSize": {
                "type": "integer",
                "format": "int32",
                "minimum": 0,
                "maximum": 5,
                "default": 3,
            },
            "large": {"type": "integer", "format": "int64", "minimum": 0, "maximum": 4294967295},
            "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
        },
        "required": ["name"],
        "x-kubernetes-validations": [
            {"rule": "self.maxSize > 0", "message": "has to be positive", "fieldPath": ".maxSize"},
            {"rule": "true", "message": "never"},
        ],
    }
    assert schema_of(Row, "v2") == {
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "items": item,
                "minItems": 1,
                "description": "Items.",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "item": item,
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "on": {"type": "boolean", "default": False},
        },
        "required": ["items"],
    }


def test_a_version_has_the_fields_that_are_only_its_own() -> None:
    assert "old" in schema_of(Item, "v1")["properties"]
    assert "old" not in schema_of(Item, "v2")["properties"]


def test_a_type_without_a_schema_is_an_error() -> None:
    class Loose(Struct, frozen=True):
        parts: tuple[dict[str, Any], ...] = ()

    with pytest.raises(UnschematicTypeError, match=r"Loose\.parts\[\]\{\}: AnyType\(\)"):
        schema_of(Loose, "v2")


def _versions() -> Iterator[tuple[Kind[Any], Schema]]:
    for kind in defined(KINDS):
        for version in custom_resource_definition(kind)["spec"]["versions"]:
            yield kind, version


def _parts(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Each part of a schema, with its path."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from _parts(part, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield from _parts(schema[key], path + mark)


def _all_parts() -> Iterator[tuple[str, Schema]]:
    for kind, version in _versions():
        path = f"{kind.name}/{version['name']}"
        yield from _parts(version["schema"]["openAPIV3Schema"], path)


def test_only_ciliums_kinds_have_definitions() -> None:
    assert [kind.name for kind in defined(KINDS)] == [
        "CiliumBGPClusterConfig",
        "CiliumBGPPeerConfig",
        "CiliumBGPAdvertisement",
        "CiliumBGPNodeConfig",
        "CiliumBGPNodeConfigOverride",
        "CiliumBGPPeeringPolicy",
    ]
    with pytest.raises(KindWithoutDefinitionError, match="Service"):
        custom_resource_definition(kinds.SERVICE)


def test_names_short_names_and_categories_are_ciliums() -> None:
    found = {kind.name: custom_resource_definition(kind) for kind in defined(KINDS)}
    short = {name: crd["spec"]["names"]["shortNames"] for name, crd in found.items()}
    assert short == {
        "CiliumBGPClusterConfig": ["cbgpcluster"],
        "CiliumBGPPeerConfig": ["cbgppeer"],
        "CiliumBGPAdvertisement": ["cbgpadvert"],
        "CiliumBGPNodeConfig": ["cbgpnode"],
        "CiliumBGPNodeConfigOverride": ["cbgpnodeoverride"],
        "CiliumBGPPeeringPolicy": ["bgpp"],
    }
    for crd in found.values():
        assert crd["metadata"]["name"] == f"{crd['spec']['names']['plural']}.cilium.io"
        assert crd["spec"]["scope"] == "Cluster"
        assert crd["spec"]["names"]["categories"] == ["cilium", "ciliumbgp"]


def test_one_version_is_stored_and_the_others_are_deprecated() -> None:
    for kind, version in _versions():
        newest = version["name"] == kind.versions[0]
        assert version["served"]
        assert version["storage"] == newest
        assert ("deprecationWarning" in version) == (not newest)


def test_every_part_has_a_type_and_every_field_a_description() -> None:
    untyped = [path for path, part in _all_parts() if "type" not in part]
    silent = [
        f"{path}.{name}"
        for path, part in _all_parts()
        for name, field in part.get("properties", {}).items()
        if name != "metadata" and not field.get("description")
    ]
    assert (untyped, silent) == ([], [])


def test_descriptions_are_sentences_without_the_names_of_python_fields() -> None:
    for path, part in _all_parts():
        text = part.get("description", "A.")
        assert text[0].isupper(), path
        assert text.endswith("."), path
        assert "_" not in text, path


def test_lists_with_names_or_types_are_map_lists() -> None:
    for path, part in _all_parts():
        fields = part.get("items", {}).get("properties", {})
        required = part.get("items", {}).get("required", [])
        key = next((name for name in ("name", "type") if name in fields), None)
        if key is not None:
            assert part["x-kubernetes-list-map-keys"] == [key], path
            assert key in required, path


def test_a_cel_rule_puts_its_error_on_a_field_that_exists() -> None:
    seen = 0
    for path, part in _all_parts():
        for rule in part.get("x-kubernetes-validations", []):
            assert rule["fieldPath"].removeprefix(".") in part["properties"], path
            seen += 1
    # Timers, auto-discovery (two rules in two kinds) and advertisements, in two versions.
    assert seen == 2 * (1 + 2 * 2 + 5)


def test_only_v2alpha1_has_dropped_fields() -> None:
    found = {path for path, _ in _all_parts()}
    dropped = {
        "CiliumBGPPeerConfig/{}.spec.transport.localPort",
        "CiliumBGPClusterConfig/{}.spec.bgpInstances[].peers[].peerConfigRef.group",
        "CiliumBGPNodeConfig/{}.spec.bgpInstances[].peers[].peerConfigRef.kind",
    }
    assert {path.format("v2alpha1") for path in dropped} <= found
    assert not {path.format("v2") for path in dropped} & found


def test_a_status_is_a_subresource() -> None:
    with_status = {
        kind.name
        for kind, version in _versions()
        if version.get("subresources") == {"status": {}}
        and "status" in version["schema"]["openAPIV3Schema"]["properties"]
    }
    assert with_status == {
        "CiliumBGPClusterConfig",
        "CiliumBGPPeerConfig",
        "CiliumBGPNodeConfig",
    }


def test_age_is_the_last_column() -> None:
    for _, version in _versions():
        assert version["additionalPrinterColumns"][-1]["name"] == "Age"
