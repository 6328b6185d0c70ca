"""Generates the structural OpenAPI schema of a CustomResourceDefinition from a row type.

Types, limits, defaults and enumerations are the annotations of the row type, which declare each once.
Pure and deterministic.

Source: Kubernetes API, apiextensions.k8s.io/v1, JSONSchemaProps. A structural schema has a type at
every level; the API server fills in the defaults of an absent object if the object has a default.
"""

from __future__ import annotations

from typing import Any

from msgspec import inspect as shapes

from resources.crds.schema_markers import VERSIONS
from resources.meta import Struct
from resources.schema import shape_of
from resources.secret_value import SecretValue

Schema = dict[str, Any]


class UnschematicTypeError(TypeError):
    """A row type has a member that no structural schema describes: an error in the row type."""

    def __init__(self, path: str, shape: object) -> None:
        super().__init__(f"{path}: {shape!r} has no structural schema")


def schema_of(row: type, version: str) -> Schema:
    """Return the OpenAPI schema, for a CRD, of a row type in one version of the API."""
    return _schema(shape_of(row), version, row.__name__)


def _schema(shape: shapes.Type, version: str, path: str) -> Schema:
    match shape:
        case shapes.Metadata():
            return _schema(shape.type, version, path) | (shape.extra_json_schema or {})
        case shapes.UnionType():
            options = [t for t in shape.types if not isinstance(t, shapes.NoneType)]
            if len(options) == 1:
                return _schema(options[0], version, path)
        case shapes.StructType():
            return _struct(shape, version, path)
        case shapes.VarTupleType() | shapes.ListType():
            items = _schema(shape.item_type, version, f"{path}[]")
            limits = {"minItems": shape.min_length, "maxItems": shape.max_length}
            return {"type": "array", "items": items} | _given(limits)
        case shapes.DictType(key_type=shapes.StrType()):
            values = _schema(shape.value_type, version, f"{path}{{}}")
            return {"type": "object", "additionalProperties": values}
    return _scalar(shape, path)


def _scalar(shape: shapes.Type, path: str) -> Schema:
    match shape:
        case shapes.IntType():
            is_int32 = shape.le is not None and shape.le < 1 << 31
            limits = {"minimum": shape.ge, "maximum": shape.le}
            return {"type": "integer", "format": "int32" if is_int32 else "int64"} | _given(limits)
        case shapes.StrType():
            limits = {"minLength": shape.min_length, "maxLength": shape.max_length}
            return {"type": "string"} | _given(limits) | _given({"pattern": shape.pattern})
        case shapes.BoolType():
            return {"type": "boolean"}
        case shapes.CustomType() if shape.cls is SecretValue:
            return {"type": "string", "format": "password"}
        case shapes.LiteralType() if all(isinstance(value, str) for value in shape.values):
            return {"type": "string", "enum": list(shape.values)}
    raise UnschematicTypeError(path, shape)


def _struct(shape: shapes.StructType, version: str, path: str) -> Schema:
    properties: Schema = {}
    required = []
    for field in shape.fields:
        if not _in_version(field.type, version):
            continue
        name = field.encode_name
        part = _schema(field.type, version, f"{path}.{name}")
        if isinstance(field.default, str | int | bool) and field.default != "":
            part["default"] = field.default
        elif defaults := _nested_defaults(field, part):
            # Complete, as validation rules are evaluated on the default as it is.
            part["default"] = defaults
        properties[name] = part
        if field.required:
            required.append(name)
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if issubclass(shape.cls, Struct) and shape.cls.cel:
        schema["x-kubernetes-validations"] = [
            {"rule": rule.cel, "message": rule.message}
            | ({"fieldPath": f".{rule.field}"} if rule.field else {})
            for rule in shape.cls.cel
        ]
    return schema


def _nested_defaults(field: shapes.Field, part: Schema) -> Schema:
    """Return the defaults of a struct that is the default of its field."""
    factory = field.default_factory
    if not (isinstance(factory, type) and issubclass(factory, Struct)):
        return {}
    inner: Schema = part["properties"]
    return {name: schema["default"] for name, schema in inner.items() if "default" in schema}


def _in_version(shape: shapes.Type, version: str) -> bool:
    only = (shape.extra or {}).get(VERSIONS) if isinstance(shape, shapes.Metadata) else None
    return only is None or version in only


def _given(limits: dict[str, Any]) -> Schema:
    return {name: value for name, value in limits.items() if value is not None}
